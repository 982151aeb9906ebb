// A model on loopback for the comparison: chat completions that reply at once or late, or refuse requests beyond a rate,
// beyond what fits into any ten seconds or beyond a number at once.
//
//   node server.mjs PORT_FILE
//
// POST /control {"latency_ms": 200, "per_second": 50, "per_window": 100, "at_once": 4} sets them (0: none) and clears the counts that GET /counts returns.

import { renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const settings = { latency_ms: 0, per_second: 0, per_window: 0, at_once: 0 };
const WINDOW_MS = 10_000;
let accepted = [];
const counts = { answered: 0, refused: 0, in_flight: 0, most_in_flight: 0 };
let allowance = { tokens: 0, at: 0 };

/** At most `per_window` in any ten seconds, and a token bucket that holds a fifth of a second. */
function isAllowed() {
  if (settings.at_once !== 0) return counts.in_flight < settings.at_once;
  const now = performance.now();
  if (settings.per_window !== 0) {
    accepted = accepted.filter((at) => now - at < WINDOW_MS);
    if (accepted.length >= settings.per_window) return false;
    accepted.push(now);
  }
  if (settings.per_second === 0) return true;
  const most = Math.max(1, settings.per_second / 5);
  allowance.tokens = Math.min(most, allowance.tokens + ((now - allowance.at) / 1000) * settings.per_second);
  allowance.at = now;
  if (allowance.tokens < 1) return false;
  allowance.tokens -= 1;
  return true;
}

/** What a model would say: the grades that each tool expects of its judge, or an answer. */
function reply(request) {
  const prompt = request.messages.map((message) => (typeof message.content === "string" ? message.content : JSON.stringify(message.content))).join("\n");
  if (request.model === "inspect-judge") return "The answer agrees with the criterion.\nGRADE: C";
  if (request.model === "promptfoo-judge") return JSON.stringify({ reason: "It agrees.", pass: true, score: 1 });
  if (request.model !== "judge") return `It is port-${prompt.length % 9000}, as the notes say.`;
  const list = /"rubric_criteria":\s*(\[[^\]]*\])/.exec(prompt);
  const ids = list === null ? ["accuracy"] : JSON.parse(list[1]);
  return JSON.stringify({ criterionResults: ids.map((id) => ({ criterionId: id, score: 4, reasoning: "It agrees." })) });
}

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function complete(text, response) {
  if (!isAllowed()) {
    counts.refused += 1;
    return send(response, 429, { error: { message: "too many requests", type: "rate_limit_exceeded" } }, { "retry-after": "1" });
  }
  const request = JSON.parse(text);
  counts.in_flight += 1;
  counts.most_in_flight = Math.max(counts.most_in_flight, counts.in_flight);
  setTimeout(() => {
    counts.in_flight -= 1;
    counts.answered += 1;
    const message = { role: "assistant", content: reply(request) };
    const usage = { prompt_tokens: text.length >> 2, completion_tokens: 40, total_tokens: (text.length >> 2) + 40 };
    send(response, 200, { id: "r", object: "chat.completion", created: 0, model: request.model, usage, choices: [{ index: 0, message, finish_reason: "stop" }] });
  }, settings.latency_ms);
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const text = Buffer.concat(parts).toString("utf8");
    if (request.url === "/counts") return send(response, 200, counts);
    if (request.url !== "/control") return complete(text, response);
    Object.assign(settings, JSON.parse(text));
    Object.assign(counts, { answered: 0, refused: 0, most_in_flight: 0 });
    allowance = { tokens: 0, at: performance.now() };
    accepted = [];
    send(response, 200, settings);
  });
});
server.listen(0, "127.0.0.1", () => {
  writeFileSync(`${process.argv[2]}.new`, String(server.address().port));
  renameSync(`${process.argv[2]}.new`, process.argv[2]);
});
