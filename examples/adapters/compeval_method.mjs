// Lets a function be a method of compeval: serve(compress), called at the end of a program. The function gets a request
// and returns an answer, or a promise of it. With --lines the program is a worker that answers one request after the other.
//
// Where the method has inputs_from = "modules", an answer also lists what the program has loaded so far. Node keeps no
// list of ES modules that others can read, so this file has to be there before them: node --import ./compeval_method.mjs PROGRAM.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import * as nodeModule from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { MessageChannel, receiveMessageOnPort } from "node:worker_threads";

const write = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");

/** Answers requests by `compress`. Standard output is for answers alone: console.log goes to standard error. */
export async function serve(compress) {
  console.log = console.info = console.error;
  if (!process.argv.includes("--lines")) {
    const request = JSON.parse(readFileSync(0, "utf8"));
    write(withModules(request, await compress(request)));
    return;
  }
  write({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    // An error fails this request alone, and not the worker.
    const failed = (error) => ({ summary: "", degraded: String(error?.message ?? error) });
    const answer = await Promise.resolve().then(() => compress(request)).catch(failed);
    write({ id: request.id, ...withModules(request, answer) });
  }
}

/** The messages that an agent would compress: what its last compression left, then what has come since. */
export function history(request) {
  const previous = request.previous ?? {};
  const left = previous.summary === undefined ? (previous.messages ?? []) : [{ role: "user", content: previous.summary }];
  return [...left, ...request.messages];
}

/** The answer, with what is loaded where the request asks for it. */
function withModules(request, answer) {
  if (!request.modules) return answer;
  const urls = loadedUrls();
  if (!urls.has(pathToFileURL(realpathSync(process.argv[1])).href)) {
    const why = "the modules that were loaded before compeval_method.mjs are not known: start the program by " +
      'command = ["node", "--import", "./PATH/compeval_method.mjs", "PROGRAM"], or list its files under `inputs`';
    return { summary: "", degraded: why };
  }
  return { ...answer, ...listed(urls) };
}

/** The URLs of ES modules that were loaded since the start, and the port that they come by where a thread sends them. */
const { loaded, received } = watchLoads();

function watchLoads() {
  const isFirst = process.execArgv.some((option) => option.startsWith("--import"));
  if (!isFirst || !nodeModule.register) return {};
  const loaded = new Set([import.meta.url]);
  if (nodeModule.registerHooks) {
    nodeModule.registerHooks({ load: (url, context, next) => (loaded.add(url), next(url, context)) });
    return { loaded };
  }
  // Before Node 22.15, hooks are in a thread of their own. What it posts has arrived when the module it loads is run.
  const { port1, port2 } = new MessageChannel();
  const hooks = `let port;
    export function initialize(data) { port = data.port; }
    export function load(url, context, next) { port.postMessage(url); return next(url, context); }`;
  const options = { data: { port: port2 }, transferList: [port2] };
  nodeModule.register(`data:text/javascript,${encodeURIComponent(hooks)}`, options);
  port1.unref();
  return { loaded, received: port1 };
}

/** The URLs of all modules that are loaded, those of `require` among them; none where the first were not seen. */
function loadedUrls() {
  if (!loaded) return new Set();
  for (let next; received && (next = receiveMessageOnPort(received)); ) loaded.add(next.message);
  for (const file of Object.keys(nodeModule.createRequire(import.meta.url).cache)) {
    if (path.isAbsolute(file)) loaded.add(pathToFileURL(file).href);
  }
  return loaded;
}

/** `modules` and `packages` of an answer: a file below `node_modules` is of a package, any other one of the project. */
function listed(urls) {
  const files = [...urls].filter((url) => url.startsWith("file:")).map((url) => fileURLToPath(url.split(/[?#]/)[0]));
  const modules = [];
  const packages = new Map();
  for (const file of [...new Set(files)].sort()) {
    if (!file.split(path.sep).includes("node_modules")) modules.push({ path: file });
    else packages.set(...packageOf(file));
  }
  return { modules, packages: [...packages.values()] };
}

/** The package of a file: the nearest `package.json` with a name and a version. Without one the file says what it is. */
function packageOf(file) {
  for (let folder = path.dirname(file); path.basename(folder) !== "node_modules"; folder = path.dirname(folder)) {
    const described = path.join(folder, "package.json");
    if (!existsSync(described)) continue;
    const { name, version } = JSON.parse(readFileSync(described, "utf8"));
    if (name && version) return [described, { name, version, path: described }];
  }
  return [file, { name: path.basename(file), version: "unknown", path: file }];
}
