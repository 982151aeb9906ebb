#!/usr/bin/env python3
"""Puts the summarising condenser of the OpenHands SDK under test: messages become its events, and its view messages."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compeval_method import history, serve  # noqa: E402

# LiteLLM would fetch a price table from the network at each start, and dies of it in a race where there is none.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")

from openhands.sdk import LLM  # noqa: E402
from openhands.sdk.context.condenser import LLMSummarizingCondenser  # noqa: E402
from openhands.sdk.context.view import View  # noqa: E402
from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent  # noqa: E402
from openhands.sdk.event.condenser import Condensation, CondensationRequest  # noqa: E402
from openhands.sdk.llm import Message, MessageToolCall, TextContent  # noqa: E402
from openhands.sdk.tool.schema import Observation  # noqa: E402


class ToolOutput(Observation):
    """What a tool of the recorded session printed."""


def events_of(number, message, calls):
    """The events of a message; `calls` has the tool and the event of each call so far."""
    text = [TextContent(text=message.get("content") or "")]
    name = f"message-{number}"
    if message["role"] == "tool":
        tool, action = calls[message["tool_call_id"]]
        output = ToolOutput(content=text)
        fields = {"tool_name": tool, "tool_call_id": message["tool_call_id"], "action_id": action}
        return [ObservationEvent(id=name, observation=output, **fields)]
    if not message.get("tool_calls"):
        source = "user" if message["role"] == "user" else "agent"
        return [MessageEvent(id=name, source=source, llm_message=Message(role=message["role"], content=text))]
    actions = []
    for at, call in enumerate(message["tool_calls"]):
        function, action = call["function"], f"{name}-{at}"
        calls[call["id"]] = (function["name"], action)
        tool_call = MessageToolCall(id=call["id"], origin="completion", **function)
        fields = {"tool_name": function["name"], "tool_call_id": call["id"], "tool_call": tool_call}
        thought = text if at == 0 else []
        actions.append(ActionEvent(id=action, thought=thought, action=None, llm_response_id=name, **fields))
    return actions


def compress(request):
    llm = LLM(
        model=f"openai/{request.get('model') or os.environ['OPENHANDS_MODEL']}",
        api_key=os.environ["OPENAI_API_KEY"],
        base_url=os.environ.get("OPENAI_BASE_URL"),
        usage_id="condenser",
        num_retries=1,
    )
    messages, calls, origin, events = history(request), {}, {}, []
    for number, message in enumerate(messages):
        for event in events_of(number, message, calls):
            origin[event.id] = number
            events.append(event)
    view = View.from_events([*events, CondensationRequest()])
    result = LLMSummarizingCondenser(llm=llm).condense(view)
    answer = {"usage": usage(llm)}
    if not isinstance(result, Condensation):
        return {**answer, "messages": messages, "compressed": False}
    kept = {}
    for event in result.apply(view.events):
        number = origin.get(event.id)
        if number is None:
            text = "".join(part.text for part in event.to_llm_message().content)
            kept[event.id] = {"role": "user", "content": text}
        else:
            kept[number] = messages[number]
    return {**answer, "messages": list(kept.values())}


def usage(llm):
    """What the LLM has counted; OpenHands knows prices only of models that it has heard of."""
    metrics = llm.metrics
    tokens = metrics.accumulated_token_usage
    counts = json.loads(tokens.model_dump_json()) if tokens else {}
    names = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
    cost = {"cost": metrics.accumulated_cost} if metrics.accumulated_cost else {}
    return {"calls": len(metrics.token_usages), **{name: counts[name] for name in names if name in counts}, **cost}


if __name__ == "__main__":
    serve(compress)
