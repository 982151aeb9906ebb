#!/usr/bin/env python3
"""Puts the summarization of deepagents under test, with the settings that it chooses for the model."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compeval_method import history, serve  # noqa: E402
from deepagents.backends import FilesystemBackend  # noqa: E402
from deepagents.middleware.summarization import SummarizationMiddleware, compute_summarization_defaults  # noqa: E402
from langchain.agents.middleware.types import ModelRequest, ModelResponse  # noqa: E402
from langchain_core.messages import AIMessage  # noqa: E402
from langchain_messages import metered, to_langchain, to_openai  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402


def compress(request):
    model = ChatOpenAI(model=request.get("model") or os.environ["LANGCHAIN_MODEL"])
    # Any history is long enough: the compression is asked for.
    defaults = {**compute_summarization_defaults(model), "trigger": ("messages", 1)}
    messages, seen = history(request), []

    def answer(changed):
        seen.append(changed.messages)
        return ModelResponse(result=[AIMessage("")])

    # What is evicted is written to a folder; an agent could read it again, an answerer cannot.
    with tempfile.TemporaryDirectory() as folder, metered(model) as usage:
        backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        middleware = SummarizationMiddleware(
            model=model, backend=backend, trim_tokens_to_summarize=None, **defaults
        )
        converted = to_langchain(messages)
        state = {"messages": converted}
        asked = ModelRequest(model=model, messages=converted, state=state, tools=[], runtime=None)
        middleware.wrap_model_call(asked, answer)
    compressed = to_openai(seen[-1])
    return {"messages": compressed, "compressed": len(compressed) < len(messages), "usage": usage}


if __name__ == "__main__":
    serve(compress)
