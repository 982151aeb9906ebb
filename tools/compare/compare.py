#!/usr/bin/env python3
"""Runs the same synthetic work with compeval, a plain asyncio script, inspect_ai and promptfoo, and prints a table.

    tools/compare/compare.py [--items 270] [--only compeval,script] [--work DIR]

Each item is an answer and a grade by a model on loopback that replies at once. There are eight situations: no reply is in the
cache (cold), all replies are in the cache (warm), a reply takes 200 ms (latency), a bucket of 50 a second that holds 10
(limit), a bucket of 20 a second that holds 4 (bucket), at most 100 in any 10 s (window), 4 at once that take 200 ms each
(slots), and a run is killed halfway and started again (killed). The figures are wall seconds, CPU seconds of the tool, and
the requests that the server answered and refused; for a killed run, also those that were paid twice. compeval is built like a
release unless COMPEVAL names a program. A tool that cannot be installed is named and skipped. Needs Node, and Python 3.10 or
newer for inspect_ai.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT = 50
BUCKET = 20
WINDOW = 100
PERIOD = 10
LATENCY = 200
SLOTS = 4
LONGEST = 300
IN_FLIGHT = 64
PROBES = 30
KINDS = ["recall", "artifact", "continuation", "decision"]


def items(count):
    """Items with a context of about 8 KB for every 30 questions, like a team's own notes."""
    made = []
    for number in range(count):
        session = number // PROBES
        lines = [f"Service s{session}-{line} listens on port-{9000 + session * 131 + line * 7}." for line in range(160)]
        asked = number % PROBES * 5
        question = f"Which port was settled on for service s{session}-{asked}?"
        made.append({"context": "\n".join(lines), "question": question, "fact": f"port-{9000 + session * 131 + asked * 7}"})
    return made


class Tool:
    """A tool that is compared. `folder` is empty before a cold run; a warm run uses what the run before left there."""

    def __init__(self, work, url, made):
        self.work, self.url, self.made = work / self.name, url, made
        self.folder = self.work / "run"

    def clear(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "items.json").write_text(json.dumps(self.made), encoding="utf-8")
        self.prepare()

    def prepare(self):
        pass

    def environment(self):
        return {}


class Compeval(Tool):
    name = "compeval"

    def install(self):
        self.program = os.environ.get("COMPEVAL")
        if self.program is None:
            build = ["cargo", "build", "--release", "--locked"]
            if subprocess.run(build, cwd=ROOT).returncode != 0:
                return "it does not build"
            self.program = str(ROOT / "target" / "release" / "compeval")
        return None

    def version(self):
        return last_line([self.program, "--version"]).split()[-1]

    def prepare(self):
        for start in range(0, len(self.made), PROBES):
            self.write_session(f"session-{start // PROBES:03}", self.made[start : start + PROBES])
        text = f"""[pipeline]
regrade = false
runs = 1
[providers.stub]
kind = "openai-chat"
base_url = "{self.url}"
identity = "stub"
[providers.stub.limits]
max_in_flight = {IN_FLIGHT}
[[compress]]
name = "full"
strategy = "full"
[[answer]]
name = "agent"
model = "stub/reader"
[[judge]]
name = "judge"
model = "stub/judge"
"""
        (self.folder / "pipeline.toml").write_text(text, encoding="utf-8")

    def write_session(self, name, part):
        lines = part[0]["context"].split("\n")
        messages = []
        for start in range(0, len(lines), 20):
            messages.append({"role": "user", "content": f"Go on with part {start // 20}."})
            messages.append({"role": "assistant", "content": "\n".join(lines[start : start + 20])})
        fixture = {"name": name, "description": "Generated.", "messages": messages}
        probes = [
            {"id": f"p{at}", "type": KINDS[at % 4], "question": item["question"], "expected_facts": [item["fact"]]}
            for at, item in enumerate(part)
        ]
        for folder, file, value in [
            ("fixtures", f"{name}.json", fixture),
            ("probes", f"{name}.probes.json", {"fixture": name, "probes": probes}),
        ]:
            (self.folder / folder).mkdir(exist_ok=True)
            (self.folder / folder / file).write_text(json.dumps(value), encoding="utf-8")

    def command(self):
        return [self.program, "run", "-q", "--label", "a", "--replace", "--allow-weak-judge"]


class Script(Tool):
    name = "script"

    def install(self):
        self.python, fault = venv(self.work, ["openai"])
        return fault

    def version(self):
        return f"openai {installed(self.python, 'openai')}"

    def command(self):
        return [self.python, HERE / "script.py", "items.json"]

    def environment(self):
        return {"BASE_URL": self.url}


class Inspect(Tool):
    name = "inspect_ai"

    def install(self):
        self.python, fault = venv(self.work, ["inspect_ai", "openai"])
        return fault

    def version(self):
        return installed(self.python, "inspect_ai")

    def prepare(self):
        # inspect_ai finds a task by its path relative to the current folder.
        shutil.copy(HERE / "inspect_task.py", self.folder)

    def command(self):
        model = "openai-api/loopback/reader"
        options = ["--display", "none", "--max-connections", str(IN_FLIGHT), "--max-samples", str(IN_FLIGHT), "--log-dir", "logs"]
        return [self.python, "-m", "inspect_ai", "eval", "inspect_task.py", "--model", model, *options]

    def environment(self):
        cache = str(self.folder / "cache")
        loopback = {"LOOPBACK_BASE_URL": self.url, "LOOPBACK_API_KEY": "none"}
        return {"ITEMS": str(self.folder / "items.json"), "INSPECT_CACHE_DIR": cache, **loopback}


class Promptfoo(Tool):
    name = "promptfoo"

    def install(self):
        if shutil.which("npm") is None:
            return "there is no npm"
        self.program = self.work / "node_modules" / ".bin" / "promptfoo"
        if self.program.exists():
            return None
        self.work.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", self.work, "promptfoo"]
        done = subprocess.run(npm, capture_output=True, text=True)
        return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["npm failed"])[-1]

    def version(self):
        package = self.work / "node_modules" / "promptfoo" / "package.json"
        return json.loads(package.read_text(encoding="utf-8"))["version"]

    def prepare(self):
        provider = {"config": {"apiBaseUrl": self.url, "apiKey": "none"}}
        judge = {"id": "openai:chat:promptfoo-judge", **provider}
        test = lambda item: {  # noqa: E731
            "vars": {"context": item["context"], "question": item["question"]},
            "assert": [{"type": "llm-rubric", "value": f"names {item['fact']}", "provider": judge}],
        }
        config = {
            "prompts": ["{{context}}\n\n{{question}}"],
            "providers": [{"id": "openai:chat:reader", **provider}],
            "tests": [test(item) for item in self.made],
        }
        (self.folder / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")

    def command(self):
        options = ["--no-progress-bar", "--no-table", "--no-share", "-j", str(IN_FLIGHT), "-o", "out.json"]
        return [self.program, "eval", "-c", "promptfooconfig.json", *options]

    def environment(self):
        off = ["TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING"]
        own = {"PROMPTFOO_CONFIG_DIR": str(self.folder / "config"), "PROMPTFOO_CACHE_PATH": str(self.folder / "cache")}
        return {**{f"PROMPTFOO_DISABLE_{name}": "1" for name in off}, **own}


def venv(work, packages):
    folder = work / "venv"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        done = subprocess.run([folder / "bin" / "pip", "install", "-q", *packages], capture_output=True, text=True)
        if done.returncode != 0:
            return python, (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        (folder / "installed").touch()
    return python, None


def last_line(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]


def installed(python, package):
    return last_line([python, "-c", f"import importlib.metadata as m; print(m.version('{package}'))"])


class Server:
    def __init__(self, work):
        self.port_file = work / "port"
        self.port_file.unlink(missing_ok=True)
        self.process = subprocess.Popen(["node", HERE / "server.mjs", self.port_file])
        while not self.port_file.exists():
            if self.process.poll() is not None:
                raise SystemExit("the server of the comparison did not start")
            time.sleep(0.02)
        self.root = f"http://127.0.0.1:{self.port_file.read_text(encoding='utf-8')}"

    def set(self, latency_ms=0, per_second=0, per_window=0, at_once=0):
        settings = {"latency_ms": latency_ms, "per_second": per_second, "per_window": per_window, "at_once": at_once}
        body = json.dumps(settings).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.root}/control", body)).read()

    def counts(self):
        return json.load(urllib.request.urlopen(f"{self.root}/counts"))


def start(tool):
    log = open(tool.folder / "log.txt", "ab")
    variables = {**os.environ, "NO_COLOR": "1", **tool.environment()}
    return subprocess.Popen(
        tool.command(), cwd=tool.folder, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def run(tool, server):
    """Wall and CPU seconds of the tool and its children, and the server's counts; None if it failed or took too long."""
    began = time.monotonic()
    process = start(tool)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        if time.monotonic() - began > LONGEST:
            os.killpg(process.pid, signal.SIGKILL)
            os.wait4(process.pid, 0)
            return None
        time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 5, 100):
        return None
    return {"wall": time.monotonic() - began, "cpu": usage.ru_utime + usage.ru_stime, **server.counts()}


def killed(tool, server, cold):
    """Kills a run halfway and starts it again. "twice" is the number of requests that were answered more than once."""
    tool.clear()
    server.set(latency_ms=20)
    process = start(tool)
    while server.counts()["answered"] < cold["answered"] / 2 and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    ended = run(tool, server)
    return ended and {**ended, "twice": max(0, ended["answered"] - cold["answered"])}


def measure(tool, server):
    tool.clear()
    server.set()
    found = {"cold": run(tool, server)}
    server.set()
    found["warm"] = run(tool, server)
    limits = {
        "latency": {"latency_ms": LATENCY},
        "limit": {"per_second": LIMIT},
        "bucket": {"per_second": BUCKET},
        "window": {"per_window": WINDOW},
        "slots": {"at_once": SLOTS, "latency_ms": LATENCY},
    }
    for name, settings in limits.items():
        tool.clear()
        server.set(**settings)
        found[name] = run(tool, server)
    found["killed"] = killed(tool, server, found["cold"]) if found["cold"] else None
    return found


def ideal(name, found):
    """The minimum number of seconds that the server allows."""
    if name == "latency":
        return found["answered"] / IN_FLIGHT * LATENCY / 1000
    if name == "slots":
        return found["answered"] / SLOTS * LATENCY / 1000
    if name == "window":
        return (math.ceil(found["answered"] / WINDOW) - 1) * PERIOD
    rates = {"limit": LIMIT, "bucket": BUCKET}
    return found["answered"] / rates[name] if name in rates else None


def print_table(results):
    print("| situation | tool | wall s | CPU s | CPU ms a request | requests | refused | wall / ideal | paid twice |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for situation in ["cold", "warm", "latency", "limit", "bucket", "window", "slots", "killed"]:
        for name, found in results.items():
            found = found[situation]
            if found is None:
                print(f"| {situation} | {name} | failed, or over {LONGEST} s | | | | | | |")
                continue
            least = ideal(situation, found)
            each = f"{1000 * found['cpu'] / found['answered']:.2f}" if found["answered"] else "–"
            share = f"{found['wall'] / least:.2f}" if least else ""
            row = [situation, name, f"{found['wall']:.2f}", f"{found['cpu']:.2f}", each, found["answered"], found["refused"]]
            print("| " + " | ".join(str(cell) for cell in [*row, share, found.get("twice", "")]) + " |")


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--items", type=int, default=270)
    parse.add_argument("--only", default="compeval,script,inspect_ai,promptfoo")
    parse.add_argument("--work", type=pathlib.Path, default=ROOT / "target" / "compare")
    given = parse.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if shutil.which("node") is None:
        raise SystemExit("the server of the comparison needs Node")
    server, results, versions = Server(given.work), {}, {}
    try:
        for kind in [Compeval, Script, Inspect, Promptfoo]:
            if kind.name not in given.only.split(","):
                continue
            tool = kind(given.work.resolve(), f"{server.root}/v1", items(given.items))
            fault = tool.install()
            if fault is not None:
                print(f"{tool.name}: skipped: {fault}")
                continue
            versions[tool.name] = tool.version()
            results[tool.name] = measure(tool, server)
    finally:
        server.process.kill()
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{given.items} items, an answer and a grade each; {os.cpu_count()} cores, {platform.platform()}, load {load}")
    print("; ".join(f"{name} {version}" for name, version in versions.items()) + "\n")
    print_table(results)


if __name__ == "__main__":
    main()
