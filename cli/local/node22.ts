// The Node that runs wrangler, which needs version 22. An older Node can run every other command.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const MAJOR = 22;
/** The npm package `node` is the program itself. */
const VERSION = "22.23.3";

/**
 * The path of a Node that wrangler accepts: the one that runs this, or one that npm installs once into the user's cache, unless
 * `signal` stops it. It does not become part of the project, whose scripts go on with their own.
 */
export async function node22(note: (line: string) => void, signal = new AbortController().signal): Promise<string> {
  if (Number(process.versions.node.split(".")[0]) >= MAJOR) return process.execPath;
  const directory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "curfew", `node-${VERSION}`);
  const binary = join(directory, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");
  if (await runs(binary)) return binary;
  note(`wrangler needs Node ${MAJOR}, this is Node ${process.versions.node}: installing Node ${VERSION} into ${directory}, once ...`);
  // An installation that was interrupted is not repaired.
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  // The package downloads nothing by itself, but it must be allowed to link the binary of this platform.
  writeFileSync(join(directory, "package.json"), JSON.stringify({ private: true, allowScripts: { node: true } }));
  const failure = await install(directory, signal);
  if (await runs(binary)) return binary;
  throw new Error(`Node ${VERSION} could not be installed with npm; install Node ${MAJOR} or newer yourself and try again\n${failure}`.trimEnd());
}

async function runs(binary: string): Promise<boolean> {
  if (!existsSync(binary)) return false;
  return promisify(execFile)(binary, ["--version"]).then(
    () => true,
    () => false,
  );
}

/** Resolves with what npm printed. */
function install(directory: string, signal: AbortSignal): Promise<string> {
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  return new Promise((resolve) => {
    const args = ["install", "--no-audit", "--no-fund", "--loglevel=error", `node@${VERSION}`];
    const child = spawn(npm, args, { cwd: directory, stdio: ["ignore", "pipe", "pipe"], shell: process.platform === "win32", signal });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += chunk));
    child.on("error", (error) => resolve(error.message));
    child.on("close", () => resolve(text));
  });
}
