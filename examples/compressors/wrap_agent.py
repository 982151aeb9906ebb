#!/usr/bin/env python3
"""Puts an agent's own compressor class under test: what it knows goes out as `state` and comes back at the next point."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from agent_compressor import ContextCompressor  # noqa: E402  (your agent's module)


def main():
    request = json.load(sys.stdin)
    previous = request["previous"] or {}
    state = previous.get("state", {})
    compressor = ContextCompressor(
        context_length=request["context_length"] or 128_000,
        files=state.get("files", {}),
        requests=state.get("requests", []),
    )
    # As in the agent: what the last compression left, then what has come since.
    history = previous.get("messages", []) + request["messages"]
    messages = compressor.compress(history, focus=request["focus_topic"])
    state = {"files": compressor.files, "requests": compressor.requests}
    result = {"messages": messages, "state": state, "usage": {"calls": 0}}
    json.dump(result, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
