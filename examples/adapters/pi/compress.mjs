#!/usr/bin/env node
// Puts pi's compaction under test: messages become entries of its session, and what it keeps becomes messages.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { serve } from "../compeval_method.mjs";

// pi is installed where the project is, or where PI_FOLDER says.
const require = createRequire(join(process.env.PI_FOLDER ?? process.cwd(), "package.json"));
const PACKAGE = process.env.PI_PACKAGE ?? "@mariozechner/pi-coding-agent";
const dist = join(require.resolve.paths(PACKAGE).map((folder) => join(folder, PACKAGE, "dist")).find(exists), "core");
const from = (path) => import(pathToFileURL(join(dist, path)).href);
const { compact, prepareCompaction, DEFAULT_COMPACTION_SETTINGS } = await from("compaction/compaction.js");
const { convertToLlm } = await from("messages.js");

function exists(folder) {
  try {
    return Boolean(require(join(dirname(folder), "package.json")));
  } catch {
    return false;
  }
}

// pi reports no usage of a compaction; its requests can be counted.
let calls = 0;
const fetched = globalThis.fetch;
globalThis.fetch = (...asked) => ((calls += 1), fetched(...asked));

const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } };
const text = (content) => (content ? [{ type: "text", text: content }] : []);

/** A message of pi's own. */
function own(message, tools) {
  const timestamp = 0;
  if (message.role === "tool") {
    const id = message.tool_call_id;
    return { role: "toolResult", toolCallId: id, toolName: tools.get(id), content: text(message.content), isError: false, timestamp };
  }
  if (message.role !== "assistant") return { role: "user", content: text(message.content), timestamp };
  const called = (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => {
    tools.set(id, name);
    return { type: "toolCall", id, name, arguments: parsed(given) };
  });
  const content = [...text(message.content), ...called];
  return { role: "assistant", content, api: "openai-completions", provider: "openai", model: "m", usage: NOTHING, stopReason: "stop", timestamp };
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return { text: json };
  }
}

function model(request) {
  return {
    id: request.model ?? process.env.PI_MODEL,
    name: "compaction",
    api: "openai-completions",
    provider: "openai",
    baseUrl: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: request.context_length ?? 200000,
    maxTokens: 16384,
  };
}

async function compress(request) {
  calls = 0;
  const messages = request.all_messages;
  const tools = new Map();
  const entry = (message, at) => ({ type: "message", id: `m${at}`, parentId: null, timestamp: "", message: own(message, tools) });
  const entries = messages.map(entry);
  const before = request.previous?.state?.compaction;
  if (before) entries.splice(before.at, 0, { type: "compaction", id: "c", parentId: null, timestamp: "", ...before });
  const keepRecentTokens = Number(process.env.KEEP_RECENT_TOKENS || DEFAULT_COMPACTION_SETTINGS.keepRecentTokens);
  const prepared = prepareCompaction(entries, { ...DEFAULT_COMPACTION_SETTINGS, keepRecentTokens });
  if (!prepared || prepared.messagesToSummarize.length + prepared.turnPrefixMessages.length === 0) {
    const kept = request.previous?.messages ?? [];
    return { messages: [...kept, ...request.messages], state: request.previous?.state ?? {}, compressed: false, usage: { calls } };
  }
  const key = process.env.OPENAI_API_KEY;
  const done = await compact(prepared, model(request), key, undefined, request.focus_topic ?? undefined);
  const [summary] = convertToLlm([{ role: "compactionSummary", summary: done.summary, tokensBefore: 0, timestamp: 0 }]);
  const content = summary.content.map((part) => part.text).join("");
  const kept = messages.slice(Number(done.firstKeptEntryId.slice(1)));
  const compaction = { at: messages.length, summary: done.summary, firstKeptEntryId: done.firstKeptEntryId, details: done.details };
  return { messages: [{ role: "user", content }, ...kept], state: { compaction }, usage: { calls } };
}

await serve(compress);
