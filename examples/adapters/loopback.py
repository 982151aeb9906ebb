#!/usr/bin/env python3
"""A model on this machine for trying adapters: it answers every request with the same summary and counts requests.

    loopback.py PORT-FILE LOG-FILE

It writes its port to PORT-FILE and a line for each request to LOG-FILE. It speaks OpenAI's chat completions, streamed or
not, and responses, so no key and no network are needed. What it says is no summary of anything: scores with it mean nothing.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SUMMARY = """## Summary of the conversation so far
The work goes on. The files that matter were read, the tests were run once, and what failed was noted.
"""
USAGE = {"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240}


def choice(streamed):
    message = {"role": "assistant", "content": SUMMARY}
    return {"index": 0, "finish_reason": "stop", "delta" if streamed else "message": message}


def response(model):
    """A reply of the responses API."""
    text = {"type": "output_text", "text": SUMMARY, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    usage = {
        "input_tokens": USAGE["prompt_tokens"],
        "output_tokens": USAGE["completion_tokens"],
        "total_tokens": USAGE["total_tokens"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    head = {"id": "r", "object": "response", "created_at": 0, "status": "completed", "model": model}
    return {**head, "output": [message], "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        self.answer("application/json", json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}))

    def do_POST(self):  # noqa: N802
        request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or "{}")
        with open(sys.argv[2], "a", encoding="utf-8") as log:
            log.write(json.dumps({"path": self.path, "model": request.get("model")}) + "\n")
        if self.path.endswith("/responses"):
            self.answer("application/json", json.dumps(response(request.get("model") or "m")))
            return
        streamed = bool(request.get("stream"))
        kind = "chat.completion.chunk" if streamed else "chat.completion"
        reply = {"id": "r", "object": kind, "created": 0, "model": request.get("model") or "m"}
        body = {**reply, "choices": [choice(streamed)], "usage": USAGE}
        if streamed:
            self.answer("text/event-stream", f"data: {json.dumps(body)}\n\ndata: [DONE]\n\n")
        else:
            self.answer("application/json", json.dumps(body))

    def answer(self, kind, body):
        data = body.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    with open(sys.argv[1] + ".new", "w", encoding="utf-8") as file:
        file.write(str(server.server_port))
    os.replace(sys.argv[1] + ".new", sys.argv[1])
    server.serve_forever()
