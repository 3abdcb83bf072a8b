// The Node that runs wrangler and TypeScript, which need version 22. An older Node can run every other command.
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { CommandError } from "../failures.ts";

const MAJOR = 22;
/** The npm package `node` is the program itself. */
const VERSION = "22.23.3";

let found: Promise<string> | undefined;

/**
 * The path of a Node of that version: the one that runs this, or one that npm installs once into the user's cache, unless
 * `signal` stops it. It does not become part of the project, whose scripts go on with their own.
 */
export function node22(note: (line: string) => void, signal = new AbortController().signal): Promise<string> {
  if (Number(process.versions.node.split(".")[0]) >= MAJOR) return Promise.resolve(process.execPath);
  // Several files of one command line need it at the same time.
  return (found ??= nodeIn(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "curfew", `node-${VERSION}`), note, signal));
}

const binaryIn = (directory: string): string => join(directory, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");

/** The Node in `directory`, installed there if it is not there yet. Other processes may be doing the same: only a whole installation gets this name. */
export async function nodeIn(directory: string, note: (line: string) => void, signal: AbortSignal): Promise<string> {
  const binary = binaryIn(directory);
  if (await runs(binary)) return binary;
  note(`this needs Node ${MAJOR}, and yours is Node ${process.versions.node}: downloading Node ${VERSION} into ${directory}, once ...`);
  const temporary = temporaryBeside(directory);
  try {
    // The package downloads nothing by itself, but it must be allowed to link the binary of this platform.
    writeFileSync(join(temporary, "package.json"), JSON.stringify({ private: true, allowScripts: { node: true } }));
    const printed = await install(temporary, signal);
    if (!(await runs(binaryIn(temporary)))) {
      throw new CommandError(`Node ${VERSION} could not be downloaded with npm\n${printed}`.trimEnd(), { next: `check that npm reaches its registry and try again, or install Node ${MAJOR} or newer yourself` });
    }
    rename(temporary, directory);
    // Another process may have been faster. What does not run was left by one that was interrupted.
    if (!(await runs(binary))) {
      const broken = temporaryBeside(directory);
      rename(directory, join(broken, "node"));
      rename(temporary, directory);
      rmSync(broken, { recursive: true, force: true });
    }
    if (await runs(binary)) return binary;
    throw new CommandError(`Node ${VERSION} could not be moved to ${directory}`, { next: "remove that directory and try again" });
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function temporaryBeside(directory: string): string {
  try {
    mkdirSync(dirname(directory), { recursive: true });
    return mkdtempSync(`${directory}-`);
  } catch (error) {
    throw new CommandError(`Node ${VERSION} cannot be installed beside ${directory}: ${(error as Error).message}`, { next: "set XDG_CACHE_HOME to a directory that can be written, or install Node 22 or newer yourself" });
  }
}

/** It does nothing where there is nothing to move, or where something stands already. */
function rename(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch {
    // Whether there is a Node in the end is what counts.
  }
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
