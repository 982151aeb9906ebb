#!/usr/bin/env python3
"""Puts an agent's compressor class under test by its name, as in: adapt_class.py agent.context:ContextCompressor

The class has compress(messages, focus_topic=...) and may have update_model(...). Only arguments that a function names
are passed to it, so that one adapter fits classes that differ in the others.
"""

import argparse
import asyncio
import contextlib
import importlib
import inspect
import json
import sys


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="MODULE:CLASS")
    parser.add_argument("--path", action="append", default=[], help="a folder to import from; may be repeated")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=JSON", help="an argument of the class; may be repeated"
    )
    return parser.parse_args()


def load(name):
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        sys.exit(f"{name}: expected MODULE:CLASS, as in agent.context:ContextCompressor")
    return getattr(importlib.import_module(module), attribute)


def option(text):
    name, equals, value = text.partition("=")
    if not equals:
        sys.exit(f"--option {text}: expected NAME=JSON")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


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


def is_secret(name, value):
    """State is stored in the cache: API keys must not be in it."""
    words = ("key", "secret", "password", "credential", "token")
    return isinstance(value, str) and any(word in name.lower() for word in words)


def compress(request, options, cls):
    model = {"model": request.get("model") or request.get("fixture_model"), "context_length": request.get("context_length")}
    compressor = cls(**{**accepted(cls, model), **options})
    previous = request.get("previous") or {}
    for name, value in previous.get("state", {}).items():
        setattr(compressor, name, value)
    if hasattr(compressor, "update_model"):
        compressor.update_model(**accepted(compressor.update_model, model))

    # As in the agent: what the last compression left, then what has come since.
    kept = previous.get("messages") or []
    if "summary" in previous:
        kept = [{"role": "user", "content": previous["summary"]}]
    messages = kept + request["messages"]
    wishes = {
        "focus_topic": request.get("focus_topic"),
        "current_tokens": sum(len(json.dumps(message, ensure_ascii=False)) for message in messages) // 4,
        "target_tokens": request.get("target_tokens"),
    }
    result = compressor.compress(messages, **accepted(compressor.compress, wishes))
    if inspect.isawaitable(result):
        result = asyncio.run(result)
    # Configuration is passed again; state is what the class learned.
    given = {*model, *options}
    learned = {name: value for name, value in vars(compressor).items() if name not in given and not is_secret(name, value)}
    state = {name: value for name, value in learned.items() if is_json(value)}
    return {"summary" if isinstance(result, str) else "messages": result, "state": state}


def main():
    given = arguments()
    request = json.load(sys.stdin)
    sys.path[:0] = [*given.path, "."]
    # Standard output is for the result alone.
    with contextlib.redirect_stdout(sys.stderr):
        result = compress(request, dict(option(text) for text in given.option), load(given.name))
    json.dump(result, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
