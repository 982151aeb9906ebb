"""Lets a Python function be a method of compeval: serve(function), called at the end of a program.

The function gets a request, as a dict, and returns an answer, as a dict. Started with --lines the program is a worker
that answers one request after the other; without, it answers one and ends. Needs nothing besides Python 3.9.
"""

import contextlib
import json
import sys


def serve(compress, worker="--lines" in sys.argv):
    """Answers requests by `compress`. What it prints goes to standard error: standard output is for answers alone."""
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        if not worker:
            request = json.load(sys.stdin)
            json.dump(compress(request), answers, ensure_ascii=False)
            return
        write(answers, {"ready": True})
        for line in sys.stdin:
            request = json.loads(line)
            write(answers, {"id": request["id"], **attempt(compress, request)})


def attempt(compress, request):
    """An exception fails this request alone, and not the worker."""
    try:
        return compress(request)
    except Exception as error:  # noqa: BLE001  (whatever the compressor raises)
        return {"summary": "", "degraded": f"{type(error).__name__}: {error}"}


def write(answers, answer):
    print(json.dumps(answer, ensure_ascii=False), file=answers, flush=True)


def history(request):
    """The messages that an agent would compress: what its last compression left, then what has come since."""
    previous = request.get("previous") or {}
    if "summary" in previous:
        return [{"role": "user", "content": previous["summary"]}, *request["messages"]]
    return [*(previous.get("messages") or []), *request["messages"]]


class Meter:
    """Counts the requests of a compressor and the tokens of their replies."""

    TOKENS = ("prompt_tokens", "completion_tokens")

    def __init__(self):
        self.calls, self.tokens, self.complete = 0, dict.fromkeys(self.TOKENS, 0), True

    def count(self, function):
        """The same function, counted. It returns a reply with `usage`, as OpenAI's client does."""

        def counted(*args, **kwargs):
            self.calls += 1
            reply = function(*args, **kwargs)
            self.add(getattr(reply, "usage", None))
            return reply

        return counted

    def add(self, usage):
        """Adds the usage of a reply, an object or a dict; one without makes the sum unknown."""
        for name in self.TOKENS:
            count = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
            self.complete = self.complete and isinstance(count, int)
            self.tokens[name] += count if isinstance(count, int) else 0

    def usage(self):
        return {"calls": self.calls, **(self.tokens if self.complete and self.calls else {})}
