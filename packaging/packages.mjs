// The npm packages and the installer script of a release. The version is that of Cargo.toml.
//
//   node packaging/packages.mjs npm OUT TARGET=BINARY…
//   node packaging/packages.mjs installers OUT OWNER/REPOSITORY SHA256SUMS
//
// The npm package `compeval` starts the program of the package for its platform, which npm chooses by `os` and `cpu`. No
// script runs when it is installed and nothing is downloaded beside npm.

import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const field = (name) => readFileSync(join(root, "Cargo.toml"), "utf8").match(new RegExp(`^${name} = "(.*)"`, "m"))[1];
const [version, description, license] = ["version", "description", "license"].map(field);

const PLATFORMS = {
  "x86_64-unknown-linux-gnu": { os: "linux", cpu: "x64", libc: "glibc" },
  "aarch64-unknown-linux-gnu": { os: "linux", cpu: "arm64", libc: "glibc" },
  "aarch64-apple-darwin": { os: "darwin", cpu: "arm64" },
  "x86_64-pc-windows-msvc": { os: "win32", cpu: "x64" },
};

const LAUNCHER = `#!/usr/bin/env node
const { spawnSync } = require("node:child_process");
const name = \`compeval-\${process.platform}-\${process.arch}\`;
const file = process.platform === "win32" ? "compeval.exe" : "compeval";
let program;
try {
  program = require.resolve(\`\${name}/\${file}\`);
} catch {
  console.error(\`compeval: there is no package \${name}; install the program another way\`);
  process.exit(1);
}
// Ctrl-C reaches the program too, which ends in order; this process waits for it.
process.on("SIGINT", () => {});
const ended = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) throw ended.error;
process.exit(ended.status ?? 1);
`;

function writePackage(folder, fields) {
  mkdirSync(folder, { recursive: true });
  const common = { name: basename(folder), version, description, license };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...common, ...fields }, null, 2) + "\n");
  for (const file of ["README.md", "LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(join(root, file), join(folder, file));
}

function npm(out, builds) {
  const optionalDependencies = {};
  for (const build of builds) {
    const [target, binary] = build.split("=");
    const { os, cpu, libc } = PLATFORMS[target] ?? fail(`unknown target ${target}`);
    const name = `compeval-${os}-${cpu}`;
    const file = os === "win32" ? "compeval.exe" : "compeval";
    writePackage(join(out, name), { os: [os], cpu: [cpu], ...(libc && { libc: [libc] }) });
    copyFileSync(binary, join(out, name, file));
    chmodSync(join(out, name, file), 0o755);
    optionalDependencies[name] = version;
  }
  const main = join(out, "compeval");
  writePackage(main, { bin: { compeval: "compeval.js" }, optionalDependencies });
  writeFileSync(join(main, "compeval.js"), LAUNCHER, { mode: 0o755 });
}

function installers(out, repository, sumsFile) {
  const sums = Object.fromEntries(
    readFileSync(sumsFile, "utf8").trim().split("\n").map((line) => line.split(/\s+\*?/).reverse()),
  );
  const archive = (target) => `compeval-v${version}-${target}.tar.gz`;
  const sum = (target) => Object.entries(sums).find(([file]) => basename(file) === archive(target))?.[1] ?? fail(`no checksum of ${archive(target)}`);
  const url = `https://github.com/${repository}/releases/download/v${version}`;
  mkdirSync(out, { recursive: true });
  const fill = (name) => readFileSync(join(root, "packaging", name), "utf8")
    .replaceAll("@VERSION@", version).replaceAll("@URL@", url).replaceAll("@REPOSITORY@", repository)
    .replace(/@SHA256 (\S+)@/g, (_, target) => sum(target))
    .replace(/@ARCHIVE (\S+)@/g, (_, target) => archive(target));
  writeFileSync(join(out, "install.sh"), fill("install.sh"), { mode: 0o755 });
}

function fail(message) {
  console.error(message);
  process.exit(2);
}

const [command, out, ...rest] = process.argv.slice(2);
if (command === "npm" && rest.length) npm(out, rest);
else if (command === "installers" && rest.length === 2) installers(out, ...rest);
else fail("usage: packages.mjs npm OUT TARGET=BINARY… | installers OUT OWNER/REPOSITORY SHA256SUMS");
