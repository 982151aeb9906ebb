#!/usr/bin/env python3
"""Compares compeval with other ways to do the same work, side by side on this machine.

    python3 tools/compare/compare.py                     # installs what is needed below target/compare, prints the table
    python3 tools/compare/compare.py --items 100 --only script,compeval --binary target/debug/compeval

The work: a model answers questions about texts of 8 KB, and a model grades each answer with the text beside it, against one
server on loopback, with at most 64 requests in flight. compeval also tests its judge, with 55 requests. A tool that cannot be
installed is skipped, and the table says so. CPU is user and system time of all processes of a tool, without the server's.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TOOLS = ROOT / "target" / "compare"
LATENCY, IN_FLIGHT, LIMIT = 0.2, 64, 56
PER_TEXT = 10


class Unavailable(Exception):
    """Why a tool is skipped."""


def items(count):
    words = "the cache of parser reads each block again when index and writer disagree about a length".split()

    def text(number):
        return " ".join(words[(number * 31 + at * at * 7 + at) % len(words)] for at in range(1500))

    texts = [text(number) for number in range((count + PER_TEXT - 1) // PER_TEXT)]
    question = "Which port was settled on in step {}, and who asked for it?"
    return [{"context": texts[at // PER_TEXT], "question": question.format(at), "text": at // PER_TEXT} for at in range(count)]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Unavailable(f"`{' '.join(map(str, command[:3]))} …`: {lines[-1][:160]}")
    return done.stdout.strip()


class Tool:
    """A way to do the work. Each has a folder of its own for all that it keeps."""

    def __init__(self, folder):
        self.folder = folder

    def environment(self):
        keep = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
        return {**keep, "NO_COLOR": "1", "HOME": str(self.folder)}


def python_tool(package):
    environment = TOOLS / "venv"
    python = environment / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", str(environment)])
    probe = f"import importlib.metadata as m; print(m.version('{package}'))"
    try:
        return python, run([python, "-c", probe])
    except Unavailable:
        run([python, "-m", "pip", "install", "-q", package])
        return python, run([python, "-c", probe])


class Script(Tool):
    name = "asyncio script"

    def install(self):
        self.python, version = python_tool("httpx")
        return f"httpx {version}"

    def prepare(self, work, url):
        (self.folder / "work.json").write_text(json.dumps(work))
        self.url = url

    def command(self):
        return [self.python, HERE / "script.py", self.folder / "work.json", self.folder / "cache", self.url]


class Inspect(Tool):
    name = "inspect_ai"

    def install(self):
        self.python, version = python_tool("inspect_ai")
        python_tool("openai")
        return version

    def prepare(self, work, url):
        (self.folder / "work.json").write_text(json.dumps(work))
        shutil.copy(HERE / "inspect_task.py", self.folder / "inspect_task.py")
        self.url = url

    def environment(self):
        return {
            **super().environment(),
            "COMPARE_WORK": str(self.folder / "work.json"),
            "SIM_BASE_URL": self.url,
            "SIM_API_KEY": "none",
            "INSPECT_CACHE_DIR": str(self.folder / "cache"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_DATA_HOME": str(self.folder / "data"),
        }

    def command(self):
        inspect = self.python.parent / "inspect"
        options = ["--model", "openai-api/sim/reader", "--max-connections", str(IN_FLIGHT), "--max-samples", str(IN_FLIGHT)]
        return [inspect, "eval", "inspect_task.py", *options, "--display", "none", "--log-dir", "logs"]


class Promptfoo(Tool):
    name = "promptfoo"

    def install(self):
        node = TOOLS / "node"
        binary = node / "node_modules" / ".bin" / "promptfoo"
        if not binary.exists():
            if shutil.which("npm") is None:
                raise Unavailable("there is no npm")
            node.mkdir(parents=True, exist_ok=True)
            run(["npm", "install", "--no-audit", "--no-fund", "promptfoo"], cwd=node)
        self.binary = binary
        manifest = json.loads((node / "node_modules" / "promptfoo" / "package.json").read_text())
        return manifest["version"]

    def prepare(self, work, url):
        model = lambda name: {"id": f"openai:chat:{name}", "config": {"apiBaseUrl": url, "apiKey": "none"}}
        check = [{"type": "llm-rubric", "value": "The answer agrees with the text: {{context}}", "provider": model("grader")}]
        tests = [{"vars": {"context": item["context"], "question": item["question"]}, "assert": check} for item in work]
        config = {"prompts": ["{{context}}\n\nQuestion: {{question}}"], "providers": [model("reader")], "tests": tests}
        (self.folder / "promptfooconfig.json").write_text(json.dumps(config))

    def environment(self):
        quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1"}
        places = {"PROMPTFOO_CONFIG_DIR": str(self.folder / "config"), "PROMPTFOO_CACHE_PATH": str(self.folder / "cache")}
        return {**super().environment(), **quiet, **places}

    def command(self):
        options = ["--max-concurrency", str(IN_FLIGHT), "--no-table", "--no-progress-bar", "-o", "out.json"]
        return [self.binary, "eval", "-c", "promptfooconfig.json", *options]


class Compeval(Tool):
    name = "compeval"
    selftest = 55

    def install(self):
        if self.binary is None:
            run(["cargo", "build", "--release", "--quiet"], cwd=ROOT)
            self.binary = ROOT / "target" / "release" / "compeval"
        return run([self.binary, "--version"]).split()[-1]

    def prepare(self, work, url):
        for part in ("fixtures", "probes"):
            (self.folder / part).mkdir(exist_ok=True)
        texts = {}
        for item in work:
            texts.setdefault(item["text"], []).append(item)
        for number, asked in texts.items():
            name, half = f"text-{number:03}", len(asked[0]["context"]) // 2
            parts = [asked[0]["context"][:half], asked[0]["context"][half:]]
            messages = [{"role": role, "content": part} for role, part in zip(("user", "assistant"), parts)]
            fixture = {"name": name, "description": "Generated.", "messages": messages}
            (self.folder / "fixtures" / f"{name}.json").write_text(json.dumps(fixture))
            kinds = ["recall", "artifact", "continuation", "decision"]
            probes = [
                {"id": f"p{at}", "type": kinds[at % 4], "question": item["question"], "expected_facts": ["cache"]}
                for at, item in enumerate(asked)
            ]
            (self.folder / "probes" / f"{name}.probes.json").write_text(json.dumps({"fixture": name, "probes": probes}))
        (self.folder / "pipeline.toml").write_text(
            f'[pipeline]\nruns = 1\n\n[providers.sim]\nkind = "openai-chat"\nbase_url = "{url}"\nidentity = "sim"\n'
            f"[providers.sim.limits]\nmax_in_flight = {IN_FLIGHT}\n\n"
            '[[compress]]\nname = "full"\nstrategy = "full"\n\n[[answer]]\nname = "agent"\nmodel = "sim/reader"\n\n'
            '[[judge]]\nname = "judge"\nmodel = "sim/grader"\n'
        )

    def command(self):
        return [self.binary, "run", "--label", "set", "--allow-weak-judge", "--allow-unproven", "--no-progress"]


class Server:
    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, HERE / "server.py"], stdout=subprocess.PIPE, text=True)
        self.root = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def setup(self, **wanted):
        urllib.request.urlopen(urllib.request.Request(self.root + "/setup", json.dumps(wanted).encode())).read()

    def stats(self):
        return json.loads(urllib.request.urlopen(self.root + "/stats").read())


def measured(tool, server, kill_after=None):
    """Runs a tool once: seconds, CPU seconds, megabytes, and what the server saw."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    log = open(tool.folder / "output.txt", "w")
    process = subprocess.Popen(
        list(map(str, tool.command())), cwd=tool.folder, env=tool.environment(), stdout=log, stderr=log, start_new_session=True
    )
    while kill_after is not None and process.poll() is None and server.stats()["accepted"] < kill_after:
        time.sleep(0.02)
    if kill_after is not None and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # compeval ends with 5 where cells failed; here the judge is no judge, and only requests count.
    if kill_after is None and code not in (0, 5, 100):
        lines = (tool.folder / "output.txt").read_text().strip().splitlines() or ["no output"]
        raise Unavailable(f"it ended with {code}: {lines[-1][:160]}")
    return {**server.stats(), "seconds": seconds, "cpu": cpu}


def fresh(kind, parent, work, server, options):
    tool = kind(pathlib.Path(tempfile.mkdtemp(dir=parent)))
    tool.binary = options.binary
    tool.install()
    tool.prepare(work, server.root + "/v1")
    return tool


def compare(kind, parent, work, server, options):
    """One row of the table."""
    needed = 2 * len(work) + getattr(kind, "selftest", 0)
    tool = fresh(kind, parent, work, server, options)
    server.setup()
    cold = measured(tool, server)
    server.setup()
    warm = measured(tool, server)
    tool = fresh(kind, parent, work, server, options)
    server.setup(latency=LATENCY)
    slow = measured(tool, server)
    tool = fresh(kind, parent, work, server, options)
    server.setup(latency=LATENCY, limit=LIMIT)
    limited = measured(tool, server)
    tool = fresh(kind, parent, work, server, options)
    server.setup(latency=LATENCY)
    killed = measured(tool, server, kill_after=needed // 2)
    before = killed["requests"]
    server.setup(latency=LATENCY)
    again = measured(tool, server)
    ideal = needed * LATENCY / IN_FLIGHT
    share = limited["accepted"] / (LIMIT * max(limited["served_seconds"], 1.0))
    return [
        cold["requests"],
        f"{cold['seconds']:.1f}",
        f"{1000 * cold['cpu'] / max(cold['requests'], 1):.1f}",
        f"{warm['seconds']:.2f}",
        f"{warm['cpu']:.2f}",
        warm["requests"],
        f"{slow['seconds'] / ideal:.2f}",
        f"{share:.2f}",
        f"{100 * limited['refused'] / max(limited['requests'], 1):.0f}%",
        before + again["requests"] - cold["requests"],
    ]


HEADER = [
    "tool", "version", "requests", "cold s", "CPU ms a request", "warm s", "warm CPU s", "warm requests",
    f"at {LATENCY * 1000:.0f} ms: wall / ideal", f"at {LIMIT} a second: share", "refused", "killed: repeated",
]


def table(rows):
    texts = [[str(cell) for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in texts]
    lines.insert(1, "|" + " --- |" * len(HEADER))
    return "\n".join(lines)


def main():
    kinds = {"script": Script, "inspect_ai": Inspect, "promptfoo": Promptfoo, "compeval": Compeval}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=270, help="questions; each takes two requests")
    parser.add_argument("--only", help="tools, separated by commas: " + ", ".join(kinds))
    parser.add_argument("--binary", type=pathlib.Path, help="a compeval that is built already")
    options = parser.parse_args()
    options.binary = options.binary and options.binary.resolve()
    chosen = options.only.split(",") if options.only else list(kinds)
    unknown = [name for name in chosen if name not in kinds]
    if unknown:
        parser.error(f"no tool is called {', '.join(unknown)}; there are {', '.join(kinds)}")
    TOOLS.mkdir(parents=True, exist_ok=True)
    work, rows, skipped = items(options.items), [HEADER], []
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as parent, Server() as server:
        for name in chosen:
            kind = kinds[name]
            print(f"{kind.name} …", file=sys.stderr, flush=True)
            try:
                tool = kind(pathlib.Path(tempfile.mkdtemp(dir=parent)))
                tool.binary = options.binary
                version = tool.install()
                options.binary = tool.binary if name == "compeval" else options.binary
                rows.append([kind.name, version, *compare(kind, parent, work, server, options)])
            except Unavailable as why:
                skipped.append(f"skipped {kind.name}: {why}")
    print(table(rows))
    print(f"\n{options.items} questions, {IN_FLIGHT} in flight; Python {platform.python_version()}, {os.cpu_count()} processors, "
          f"load {before:.1f} before and {os.getloadavg()[0]:.1f} after.")
    print("\n".join(skipped))
    return 1 if len(rows) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
