// Which tools the scripts need, where they are installed, and how they are called. This file only names them.
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StepFailed } from "./terminal.mjs";

export const root = fileURLToPath(new URL("..", import.meta.url));

export const WASM_TARGET = "wasm32-unknown-unknown";

/** A file in node_modules/.bin. @param {string} name */
export const npmBinary = (name) => join(root, "node_modules", ".bin", name);

/** Outside the checkout: a fresh clone finds what an earlier one has built. */
export const toolCache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "curfew-tools");

/** Node 22, which wrangler and the tests need: the one that npm installed, not the one that runs this script. */
export function node22() {
  const installed = npmBinary("node");
  if (existsSync(installed)) return installed;
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  throw new StepFailed("npm did not install Node 22 (package `node`): are install scripts switched off? Use Node 22 or newer.");
}

/** Local tools send no request to other machines. */
export const quietEnvironment = {
  ...process.env,
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_HIDE_BANNER: "true", // the banner asks the registry for a newer version
  CLOUDFLARE_CF_FETCH_ENABLED: "false", // no request.cf from Cloudflare's servers
  // Child processes use the same Node.
  PATH: [join(root, "node_modules", ".bin"), process.env.PATH].join(process.platform === "win32" ? ";" : ":"),
};

/**
 * The arguments of `run` in terminal.mjs for a TypeScript program of the repository.
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
