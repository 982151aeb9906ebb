// Lets a function be a method of compeval: serve(compress), called at the end of a program. The function gets a request
// and returns an answer, or a promise of it. With --lines the program is a worker that answers one request after the other.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const write = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");

/** Answers requests by `compress`. Standard output is for answers alone: console.log goes to standard error. */
export async function serve(compress) {
  console.log = console.info = console.error;
  if (!process.argv.includes("--lines")) {
    const request = JSON.parse(readFileSync(0, "utf8"));
    write(await compress(request));
    return;
  }
  write({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    // An error fails this request alone, and not the worker.
    const failed = (error) => ({ summary: "", degraded: String(error?.message ?? error) });
    const answer = await Promise.resolve().then(() => compress(request)).catch(failed);
    write({ id: request.id, ...answer });
  }
}

/** The messages that an agent would compress: what its last compression left, then what has come since. */
export function history(request) {
  const previous = request.previous ?? {};
  const left = previous.summary === undefined ? (previous.messages ?? []) : [{ role: "user", content: previous.summary }];
  return [...left, ...request.messages];
}
