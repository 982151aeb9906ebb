#!/usr/bin/env python3
"""Puts LangChain's SummarizationMiddleware under test. KEEP_MESSAGES and TRIM_TOKENS are its own settings."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compeval_method import history, serve  # noqa: E402
from langchain.agents.middleware import SummarizationMiddleware  # noqa: E402
from langchain_messages import metered, to_langchain, to_openai  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402


def settings():
    """Those that are set; the middleware has defaults for the others."""
    given = {}
    if os.environ.get("KEEP_MESSAGES"):
        given["keep"] = ("messages", int(os.environ["KEEP_MESSAGES"]))
    if os.environ.get("TRIM_TOKENS"):
        trim = os.environ["TRIM_TOKENS"]
        given["trim_tokens_to_summarize"] = None if trim == "none" else int(trim)
    return given


def compress(request):
    model = ChatOpenAI(model=request.get("model") or os.environ["LANGCHAIN_MODEL"])
    # Any history is long enough: the compression is asked for.
    middleware = SummarizationMiddleware(model=model, trigger=("messages", 1), **settings())
    messages = history(request)
    with metered(model) as usage:
        update = middleware.before_model({"messages": to_langchain(messages)}, runtime=None)
    if update is None:
        return {"messages": messages, "compressed": False, "usage": usage}
    # The first is the order to remove all messages.
    return {"messages": to_openai(update["messages"][1:]), "usage": usage}


if __name__ == "__main__":
    serve(compress)
