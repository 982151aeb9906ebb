"""compeval from Python: put a function under test, run an evaluation, read its results.

Everything here calls the program `compeval` that this package installs, and reads the JSON that it prints.
"""

from __future__ import annotations

from typing import Callable

from .guarding import guard
from .methods import Meter, history, serve
from .program import CompevalError, run
from .rows import frame, rows

__all__ = ["CompevalError", "Meter", "frame", "guard", "history", "method", "rows", "run", "serve"]


def method(function: Callable[[dict], dict]) -> Callable[[dict], dict]:
    """Makes `function` a compression method, as the last statement of a program that `pipeline.toml` names.

    Run as a program, the module answers requests until its input ends. Imported, by a test for instance, it does nothing.
    """
    if function.__module__ == "__main__":
        serve(function)
    return function
