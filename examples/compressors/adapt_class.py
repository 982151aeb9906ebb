#!/usr/bin/env python3
"""Puts an agent's compressor class under test by its name, as in: adapt_class.py agent.context:ContextCompressor

The class has compress(messages, focus_topic=...) and may have update_model(...). Only arguments that a function names
are passed to it, so that one adapter fits classes that differ in the others. With --lines it is a worker: it answers
one request after the other.
"""

import argparse
import asyncio
import importlib
import inspect
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "adapters"))
from compeval_method import Meter, history, serve  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("name", metavar="MODULE:CLASS")
    add("--path", action="append", default=[], help="a folder to import from; may be repeated")
    add("--option", action="append", default=[], metavar="NAME=JSON", help="an argument of the class and of update_model")
    add("--option-env", action="append", default=[], metavar="NAME=VARIABLE", help="the same, from a variable: for keys")
    add("--call", action="append", default=[], metavar="NAME=JSON", help="an argument of compress")
    add("--attr", action="append", default=[], metavar="NAME=JSON", help="an attribute that is set before each call")
    add("--degraded", action="append", default=[], metavar="NAME", help="an attribute that is true after a fallback")
    add("--unchanged", action="append", default=[], metavar="NAME", help="an attribute that is true if nothing was done")
    add("--meter", metavar="MODULE:FUNCTION", help="the function that asks the model, to count requests and tokens")
    add("--lines", action="store_true", help="be a worker")
    return parser.parse_args()


def load(name):
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        sys.exit(f"{name}: expected MODULE:NAME, as in agent.context:ContextCompressor")
    return importlib.import_module(module), attribute


def setting(text):
    name, equals, value = text.partition("=")
    if not equals:
        sys.exit(f"{text}: expected NAME=JSON")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def from_environment(text):
    name, _, variable = text.partition("=")
    if not os.environ.get(variable):
        sys.exit(f"--option-env {text}: {variable} is not set; list it in `secrets` or `env` of the method")
    return name, os.environ[variable]


def accepted(function, values):
    """Those of `values` that `function` has a parameter for, without what is unknown."""
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return {name: value for name, value in values.items() if value is not None and (takes_all or name in names)}


def is_json(value):
    """Whether `value` is unchanged by a way through JSON: a tuple or a dict with numbers as keys is not."""
    try:
        return json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError):
        return False


# State is stored: keys must not be in it. Clocks and caches would make equal results differ.
SECRETS = ("key", "secret", "password", "credential", "token")
PASSING = ("time", "clock", "cooldown", "until", "cache", "deadline", "elapsed", "duration")


def is_state(name, value):
    words = name.lower()
    is_secret = isinstance(value, str) and any(word in words for word in SECRETS)
    is_passing = any(word in words for word in PASSING) or words.endswith("_at")
    return not is_secret and not is_passing and is_json(value)


class Adapter:
    def __init__(self, given):
        self.given = given
        self.options = dict([*map(setting, given.option), *map(from_environment, given.option_env)])
        module, name = load(given.name)
        self.cls = getattr(module, name)
        self.meter = None
        if given.meter:
            module, name = load(given.meter)
            self.ask, self.meter = getattr(module, name), Meter()
            setattr(module, name, lambda *args, **kwargs: self.meter.count(self.ask)(*args, **kwargs))

    def compress(self, request):
        if self.meter:
            self.meter = Meter()
        model = {
            "model": request.get("model") or request.get("fixture_model"),
            "context_length": request.get("context_length"),
            "config_context_length": request.get("context_length"),
        }
        settings = {**model, **self.options}
        compressor = self.cls(**{**accepted(self.cls, model), **self.options})
        previous = request.get("previous") or {}
        for name, value in previous.get("state", {}).items():
            setattr(compressor, name, value)
        if hasattr(compressor, "update_model"):
            # The options again: a method that sets endpoint and key at once resets those that it is not given.
            compressor.update_model(**accepted(compressor.update_model, settings))
        for name, value in map(setting, self.given.attr):
            setattr(compressor, name, value)
        messages = history(request)
        wishes = {
            "focus_topic": request.get("focus_topic"),
            "current_tokens": sum(len(json.dumps(message, ensure_ascii=False)) for message in messages) // 4,
            "target_tokens": request.get("target_tokens"),
            "force": request.get("force"),
            **dict(map(setting, self.given.call)),
        }
        result = compressor.compress(messages, **accepted(compressor.compress, wishes))
        if inspect.isawaitable(result):
            result = asyncio.run(result)
        return self.answer(compressor, result, settings)

    def answer(self, compressor, result, settings):
        # Settings are passed again; state is what the class learned.
        learned = {name: value for name, value in vars(compressor).items() if name not in settings}
        state = {name: value for name, value in learned.items() if is_state(name, value)}
        answer = {"summary" if isinstance(result, str) else "messages": result, "state": state}
        if self.meter:
            answer["usage"] = self.meter.usage()
        fallbacks = [name for name in self.given.degraded if getattr(compressor, name, None)]
        if fallbacks:
            reasons = "; ".join(f"{name} is {getattr(compressor, name)}" for name in fallbacks)
            answer["degraded"] = reasons
        if any(getattr(compressor, name, None) for name in self.given.unchanged):
            answer["compressed"] = False
        return answer


if __name__ == "__main__":
    given = arguments()
    sys.path[:0] = [*given.path, "."]
    serve(Adapter(given).compress, worker=given.lines)
