#!/usr/bin/env node
// A sliding summary: one line for each turn, carried on as state; the oldest lines go when room is short.

import { readFileSync } from "node:fs";

const CHARACTERS_PER_TOKEN = 4;
const DEFAULT_TOKENS = 1000;

/** The first sentence of a text, or as much of it as a line holds. */
function firstSentence(text, limit = 200) {
  const line = text.trim().split(/\n|(?<=[.!?]) |(?<=[。！？])/)[0] ?? "";
  return line.length > limit ? line.slice(0, limit) + "…" : line;
}

/** What a tool call was for: its name and its shortest telling argument. */
function callLine(call) {
  let args = {};
  try {
    args = JSON.parse(call.function.arguments);
  } catch {
    // Models do write broken JSON; the tool's name says something by itself.
  }
  const subject = args.path ?? args.command ?? args.pattern ?? "";
  return `  ran ${call.function.name} ${firstSentence(String(subject), 120)}`;
}

function linesOf(message) {
  if (message.role === "tool") return [];
  const said = message.content ? [`${message.role}: ${firstSentence(message.content)}`] : [];
  return [...said, ...(message.tool_calls ?? []).map(callLine)];
}

const request = JSON.parse(readFileSync(0, "utf8"));
const room = (request.target_tokens ?? DEFAULT_TOKENS) * CHARACTERS_PER_TOKEN;
const known = request.previous?.state?.lines ?? [];
let lines = [...known, ...request.messages.flatMap(linesOf)];
let dropped = request.previous?.state?.dropped ?? 0;
while (lines.length > 1 && lines.join("\n").length > room) {
  lines.shift();
  dropped += 1;
}

const note = dropped > 0 ? `(${dropped} older lines dropped)\n` : "";
const summary = `What happened so far, oldest first:\n${note}${lines.join("\n")}`;
process.stdout.write(JSON.stringify({ summary, state: { lines, dropped }, usage: { calls: 0 } }));
