"""Messages in OpenAI's shape to LangChain's and back, and the usage that LangChain reports."""

from contextlib import contextmanager

from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.messages import convert_to_messages, convert_to_openai_messages


def to_langchain(messages):
    """LangChain's messages, each with an id: middleware finds messages by it."""
    converted = convert_to_messages(messages)
    for number, message in enumerate(converted):
        message.id = f"message-{number}"
    return converted


def to_openai(messages):
    return convert_to_openai_messages(messages, text_format="string")


@contextmanager
def metered(model):
    """Yields a dict that has the usage of all requests of `model` at the end."""
    usage, calls = {}, []
    with get_usage_metadata_callback() as callback:
        before = type(model)._generate

        def counted(self, *args, **kwargs):
            calls.append(1)
            return before(self, *args, **kwargs)

        type(model)._generate = counted
        try:
            yield usage
        finally:
            type(model)._generate = before
            reported = list(callback.usage_metadata.values())
            for name in ("input_tokens", "output_tokens"):
                if reported:
                    usage[name] = sum(one[name] for one in reported)
            usage["calls"] = len(calls)
