// Which tools the build needs, where they live, and how they are called. Nothing here does any work.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StepFailed } from "./terminal.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));

export const WASM_TARGET = "wasm32-unknown-unknown";
const WORKER_BUILD_VERSION = "0.8.7";

/** A file in node_modules/.bin. @param {string} name */
export const npmBinary = (name) => join(root, "node_modules", ".bin", name);

/** Outside the checkout: every clone, and a fresh one, finds what an earlier one has built. */
const toolCache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "curfew-tools");

/** @param {string} name @param {string} version @param {string} binary */
function cargoTool(name, version, binary) {
  const directory = join(toolCache, `${name}-${version}`);
  return { name, version, directory, binary: join(directory, "bin", binary) };
}

export function cargoTools() {
  return {
    workerBuild: cargoTool("worker-build", WORKER_BUILD_VERSION, "worker-build"),
    wasmBindgen: cargoTool("wasm-bindgen-cli", wasmBindgenVersion(), "wasm-bindgen"),
  };
}

/** The command line tool only reads output of a crate of exactly its own version: Cargo.lock says which. */
function wasmBindgenVersion() {
  const lock = readFileSync(join(root, "Cargo.lock"), "utf8");
  const match = /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(lock.replaceAll("\r\n", "\n"));
  if (!match) throw new StepFailed("Cargo.lock has no wasm-bindgen: is it complete?");
  return /** @type {string} */ (match[1]);
}

/** Node 22, which wrangler and the tests need: the one npm installed, whatever started this script. */
export function node22() {
  const installed = npmBinary("node");
  if (existsSync(installed)) return installed;
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  throw new StepFailed("npm did not install Node 22 (package `node`): were install scripts switched off? Use Node 22 or newer.");
}

/** Local tools talk to this machine only. */
export const quietEnvironment = {
  ...process.env,
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_HIDE_BANNER: "true", // the banner asks the registry for a newer version
  CLOUDFLARE_CF_FETCH_ENABLED: "false", // no request.cf from Cloudflare's servers
  // `node` of a child, and of its children, is the one of npm too.
  PATH: [join(root, "node_modules", ".bin"), process.env.PATH].join(process.platform === "win32" ? ";" : ":"),
};

/**
 * How to run a TypeScript program of the repository: what `run` of terminal.mjs is called with.
 * @param {string} file
 * @param {Record<string, string>} [variables]
 * @returns {[command: string, args: string[], options: {cwd: string, env: NodeJS.ProcessEnv}]}
 */
export const program = (file, variables = {}) => [
  node22(),
  ["--disable-warning=ExperimentalWarning", file],
  { cwd: root, env: { ...quietEnvironment, ...variables } },
];

export const wrangler = join(root, "node_modules", "wrangler", "bin", "wrangler.js");
