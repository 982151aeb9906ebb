"""Lets a Python function be a method of compeval: serve(function), called at the end of a program.

The function gets a request, as a dict, and returns an answer, as a dict. Started with --lines the program is a worker
that answers one request after the other; without, it answers one and ends. Needs nothing besides Python 3.9.

Where the method has inputs_from = "modules", an answer also lists what the program has loaded so far.
"""

import contextlib
import importlib.metadata
import json
import os
import sys
import sysconfig

# Relative paths of modules mean this folder, wherever the program goes later.
START = os.getcwd()


def serve(compress, worker="--lines" in sys.argv):
    """Answers requests by `compress`. What it prints goes to standard error: standard output is for answers alone."""
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        if not worker:
            request = json.load(sys.stdin)
            json.dump(with_modules(request, compress(request)), answers, ensure_ascii=False)
            return
        write(answers, {"ready": True})
        for line in sys.stdin:
            request = json.loads(line)
            write(answers, {"id": request["id"], **with_modules(request, attempt(compress, request))})


def attempt(compress, request):
    """An exception fails this request alone, and not the worker."""
    try:
        return compress(request)
    except Exception as error:  # noqa: BLE001  (whatever the compressor raises)
        return {"summary": "", "degraded": f"{type(error).__name__}: {error}"}


def write(answers, answer):
    print(json.dumps(answer, ensure_ascii=False), file=answers, flush=True)


def history(request):
    """The messages that an agent would compress: what its last compression left, then what has come since."""
    previous = request.get("previous") or {}
    if "summary" in previous:
        return [{"role": "user", "content": previous["summary"]}, *request["messages"]]
    return [*(previous.get("messages") or []), *request["messages"]]


def with_modules(request, answer):
    """The answer, with what is loaded where the request asks for it."""
    return {**answer, **LOADED.lists()} if request.get("modules") else answer


class Loaded:
    """What the program has loaded so far: files of the project's modules, and the packages that all others are of."""

    INSTALLED = ("site-packages", "dist-packages")

    def __init__(self):
        self.files, self.owners = set(), None
        self.standard = folders("stdlib", "platstdlib")
        self.site = folders("purelib", "platlib")

    def lists(self):
        """`modules` and `packages` of an answer. A module that was removed from sys.modules stays in the list."""
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        self.files.update(os.path.join(START, file) for file in files if isinstance(file, str))
        modules, packages = [], {}
        for file in sorted(self.files):
            top = self.installed_name(file)
            if top is not None:
                packages.update(self.packages(top, file))
            elif not is_below(file, self.standard):
                modules.append({"path": file})
        return {"modules": modules, "packages": [packages[path] for path in sorted(packages)]}

    def installed_name(self, file):
        """The first name below the folder of packages that a file is in; None of a file in no such folder."""
        parts = file.split(os.sep)
        at = max((at for at, part in enumerate(parts[:-1]) if part in self.INSTALLED), default=None)
        if at is not None:
            return parts[at + 1].partition(".")[0]
        for folder in self.site:
            if folder not in self.standard and is_below(file, [folder]):
                return os.path.relpath(file, folder).split(os.sep)[0].partition(".")[0]
        return None

    def packages(self, top, file):
        """The packages with a module of this name, by the files that say their versions."""
        if self.owners is None or top not in self.owners:
            self.owners = owners()
        # No package says that the file is its own: then the file alone says what it is.
        alone = [{"name": top, "version": "unknown", "path": file}]
        return {package["path"]: package for package in self.owners.get(top, alone)}


def owners():
    """The installed packages, by the names of the modules that they have at the top."""
    found = {}
    for package in importlib.metadata.distributions():
        path, name = getattr(package, "_path", None), package.metadata["Name"]
        if path is None or not name:
            continue
        files = (os.path.join(str(path), file) for file in ("METADATA", "PKG-INFO"))
        path = next((file for file in files if os.path.isfile(file)), str(path))
        entry = {"name": name, "version": str(package.version), "path": os.path.abspath(path)}
        tops = (package.read_text("top_level.txt") or "").replace("/", " ").split()
        for top in set(tops or (file.parts[0].partition(".")[0] for file in package.files or ())):
            found.setdefault(top, []).append(entry)
    return found


def folders(*names):
    paths = {sysconfig.get_path(name) for name in names} - {None}
    return paths | {os.path.realpath(path) for path in paths}


def is_below(file, folders):
    return any(file.startswith(folder + os.sep) for folder in folders)


LOADED = Loaded()


class Meter:
    """Counts the requests of a compressor and the tokens of their replies."""

    TOKENS = ("prompt_tokens", "completion_tokens")

    def __init__(self):
        self.calls, self.tokens, self.complete = 0, dict.fromkeys(self.TOKENS, 0), True

    def count(self, function):
        """The same function, counted. It returns a reply with `usage`, as OpenAI's client does."""

        def counted(*args, **kwargs):
            self.calls += 1
            reply = function(*args, **kwargs)
            self.add(getattr(reply, "usage", None))
            return reply

        return counted

    def add(self, usage):
        """Adds the usage of a reply, an object or a dict; one without makes the sum unknown."""
        for name in self.TOKENS:
            count = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
            self.complete = self.complete and isinstance(count, int)
            self.tokens[name] += count if isinstance(count, int) else 0

    def usage(self):
        return {"calls": self.calls, **(self.tokens if self.complete and self.calls else {})}
