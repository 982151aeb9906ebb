"""Stands for the compressor inside an agent: the class that the agent itself calls when its window fills up.

It knows nothing of compeval. In your project this file is your agent's own module.
"""

from dataclasses import dataclass, field


MARK = "[earlier conversation, compressed]"


@dataclass
class ContextCompressor:
    """Protects the head and the tail of a conversation and folds what lies between into a digest."""

    context_length: int
    head: int = 2
    tail_share: float = 0.01
    files: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)

    def compress(self, messages, focus=None):
        """Returns the messages that take the place of `messages`."""
        tail = self._tail_start(messages)
        head = min(self._safe(messages, self.head), tail)
        self._learn(messages[head:tail])
        return [*messages[:head], {"role": "user", "content": self._digest(focus)}, *messages[tail:]]

    def _tail_start(self, messages):
        room = self.context_length * self.tail_share * 4
        at = len(messages)
        while at > 0 and room > 0:
            at -= 1
            calls = messages[at].get("tool_calls") or []
            room -= len(messages[at].get("content") or "") + sum(len(c["function"]["arguments"]) for c in calls)
        return self._safe(messages, at)

    @staticmethod
    def _safe(messages, at):
        """The next index from `at` on that parts no tool call from its result."""
        while at < len(messages) and messages[at]["role"] == "tool":
            at += 1
        return at

    def _learn(self, messages):
        for message in messages:
            # The digest of an earlier compression is known already.
            if message["role"] == "user" and not message["content"].startswith(MARK):
                self.requests.append((message.get("content") or "").strip()[:300])
            for call in message.get("tool_calls") or []:
                for word in call["function"]["arguments"].replace('"', " ").split():
                    if "/" in word and "." in word.rsplit("/", 1)[-1]:
                        self.files[word.strip("\\,:;'(){}[]")] = call["function"]["name"]

    def _digest(self, focus):
        lines = [MARK, "The user asked:", *(f"- {r}" for r in self.requests)]
        lines += ["Files:", *(f"- {path} ({tool})" for path, tool in list(self.files.items())[-30:])]
        return "\n".join(lines + ([f"Focus: {focus}"] if focus else []))
