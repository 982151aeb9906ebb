// Your compressor, as a function from a request to a context. As it stands it keeps the task and the newest messages.

import { history, serve } from "../compeval_method.mjs";

const NEWEST = 8;

/** Returns `messages` or a `summary`; `usage` and `warnings` if there are any. Put your own call here; it may be async. */
function compress(request) {
  const messages = history(request);
  let kept = messages.slice(-NEWEST);
  // A result without its call is refused by most providers.
  while (kept.length > 0 && kept[0].role === "tool") kept = kept.slice(1);
  const first = messages.slice(0, Math.min(1, messages.length - kept.length));
  return { messages: [...first, ...kept] };
}

await serve(compress);
