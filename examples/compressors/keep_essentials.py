#!/usr/bin/env python3
"""Keeps what the user said, the lines of failures, and the newest turns word for word. No model, no state."""

import json
import re
import sys

NEWEST_TURNS = 6
FAILURE = re.compile(r"(error|exception|failed|fatal|denied|not found|traceback)", re.IGNORECASE)


def boundaries(messages):
    """Where a cut parts no tool call from its result: before anything but a result."""
    return [at for at, message in enumerate(messages) if message["role"] != "tool"]


def failures(messages):
    """The lines of tool results that speak of trouble, newest last, each once."""
    lines = {}
    for message in messages:
        if message["role"] == "tool":
            for line in message["content"].splitlines():
                if FAILURE.search(line) and len(line) < 300:
                    lines.pop(line.strip(), None)
                    lines[line.strip()] = True
    return list(lines)


def main():
    request = json.load(sys.stdin)
    messages = request["all_messages"]
    cut = (boundaries(messages) or [0])[-NEWEST_TURNS:][0]
    old, newest = messages[:cut], messages[cut:]

    said = [m["content"].strip() for m in old if m["role"] == "user" and m.get("content")]
    notes = ["## What the user said", *(f"- {text}" for text in said or ["(nothing)"])]
    notes += ["", "## What failed", *(f"- {line}" for line in failures(old)[-12:] or ["(nothing)"])]
    if request["focus_topic"]:
        notes += ["", f"The work goes on with: {request['focus_topic']}"]

    summary = {"role": "user", "content": "\n".join(notes)}
    json.dump({"messages": [summary, *newest], "usage": {"calls": 0}}, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
