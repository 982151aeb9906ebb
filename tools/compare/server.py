"""The provider on loopback that all tools ask: OpenAI's chat completions, with a latency and a limit.

`GET /stats` says what arrived; `POST /setup` with {"latency": seconds, "limit": requests a second or null} begins anew.
"""

import asyncio
import collections
import hashlib
import json
import re
import time

WORDS = "the cache of parser reads each block again when index and writer disagree about a length".split()


class State:
    def __init__(self):
        self.setup({})

    def setup(self, wanted):
        self.latency = wanted.get("latency", 0.0)
        self.limit = wanted.get("limit")
        self.accepted = collections.deque()
        self.counts = {"requests": 0, "accepted": 0, "refused": 0, "most_in_flight": 0}
        self.in_flight = 0
        self.first = self.last = None

    def accepts(self, now):
        if self.limit is None:
            return True
        while self.accepted and now - self.accepted[0] >= 1.0:
            self.accepted.popleft()
        if len(self.accepted) >= self.limit:
            return False
        self.accepted.append(now)
        return True

    def stats(self):
        seconds = self.last - self.first if self.last else 0.0
        return {**self.counts, "served_seconds": seconds}


STATE = State()


def prose(seed, words):
    """Words that depend on nothing but the request."""
    digest = hashlib.sha256(seed).digest()
    return " ".join(WORDS[digest[at % 32] % len(WORDS)] for at in range(words))


def reply_to(request, body):
    """What a model would say, in the form that each tool wants of a grader."""
    prompt = "\n".join(str(message.get("content", "")) for message in request["messages"])
    if request["model"] == "reader":
        return f"It was settled in step {body.count(b' ') % 97}. {prose(body, 60)}"
    criteria = re.search(r'"rubric_criteria":\s*(\[[^\]]*\])', prompt)
    if criteria:
        grades = [{"criterionId": name, "score": 4, "reasoning": prose(body, 12)} for name in json.loads(criteria.group(1))]
        return json.dumps({"criterionResults": grades})
    if "GRADE:" in prompt:
        return f"{prose(body, 12)}\nGRADE: C"
    return json.dumps({"reason": prose(body, 12), "score": 0.8, "pass": True})


def answered(body):
    request = json.loads(body)
    text = reply_to(request, body)
    usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(text) // 4}
    usage["total_tokens"] = sum(usage.values())
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "r", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice], "usage": usage}


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.received = transport, b""

    def data_received(self, data):
        self.received += data
        while True:
            head, found, rest = self.received.partition(b"\r\n\r\n")
            if not found:
                return
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            length = int(length.group(1)) if length else 0
            if len(rest) < length:
                if b"100-continue" in head:
                    self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            self.received = rest[length:]
            self.request(head.split(b" ", 2)[1], rest[:length])

    def request(self, path, body):
        if path == b"/stats":
            return self.send(200, STATE.stats())
        if path == b"/setup":
            STATE.setup(json.loads(body))
            return self.send(200, {})
        now = time.monotonic()
        STATE.first = STATE.first or now
        STATE.counts["requests"] += 1
        if not STATE.accepts(now):
            STATE.counts["refused"] += 1
            return self.send(429, {"error": {"type": "rate_limit", "message": "too many requests"}}, "Retry-After: 1\r\n")
        STATE.in_flight += 1
        STATE.counts["most_in_flight"] = max(STATE.counts["most_in_flight"], STATE.in_flight)
        asyncio.get_running_loop().call_later(STATE.latency, self.answer, body)

    def answer(self, body):
        STATE.in_flight -= 1
        STATE.counts["accepted"] += 1
        STATE.last = time.monotonic()
        self.send(200, answered(body))

    def send(self, status, value, headers=""):
        if self.transport.is_closing():
            return
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
