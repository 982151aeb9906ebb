"""Runs the program and reads what it prints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Sequence

# Results were written: all went well, cells are missing, a budget ended the run, a gate failed.
WITH_RESULTS = (0, 5, 6, 100)


class CompevalError(RuntimeError):
    """The program ended without a result. `code` is its exit code; the message is what it wrote to standard error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message.strip() or f"compeval ended with exit code {code}")
        self.code = code


def program() -> str:
    """The program: `COMPEVAL` of the environment, else the one installed beside this package, else one on the path."""
    name = "compeval.exe" if os.name == "nt" else "compeval"
    beside = Path(sysconfig.get_path("scripts")) / name
    found = os.environ.get("COMPEVAL") or (str(beside) if beside.exists() else shutil.which("compeval"))
    if found is None:
        raise FileNotFoundError("compeval is not installed in this environment, and not on the path")
    return found


def call(project: str | os.PathLike[str], *arguments: str) -> tuple[int, str]:
    """The exit code and standard output of `compeval ARGUMENTS`. Raises CompevalError where there is no result."""
    command = [program(), "-C", os.fspath(project), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    if done.returncode not in WITH_RESULTS or not done.stdout:
        raise CompevalError(done.returncode, done.stderr)
    return done.returncode, done.stdout


def run(
    project: str | os.PathLike[str] = ".",
    *,
    label: str | None = None,
    compare_to: str | None = None,
    methods: Sequence[str] = (),
    fixtures: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> dict[str, Any]:
    """Runs the evaluation of a project, as `compeval run --json` does, and returns what it prints.

    The dict has the fields of `summary.json` (docs/data.md), and `exit_code`: 0, or 5 where cells are missing, 6 where a
    budget ended the run, 100 where a gate failed. `flags` are further flags, such as `["--max-cost", "2"]`. Raises
    CompevalError where no result was written.
    """
    options: list[str] = []
    for flag, value in (("--label", label), ("--compare-to", compare_to)):
        options += [flag, value] if value is not None else []
    for flag, names in (("--methods", methods), ("--fixtures", fixtures)):
        options += [flag, ",".join(names)] if names else []
    code, text = call(project, "run", "--json", *options, *flags)
    return {**json.loads(text), "exit_code": code}
