// Runs `curfew` as a process, as a shell does.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { join } from "node:path";
import { root } from "./harness.ts";

export interface Finished {
  code: number | null;
  out: string;
  errors: string;
}

export interface RunningCommand {
  process: ChildProcessWithoutNullStreams;
  /** What was printed so far. */
  printed: { out: string; errors: string };
  finished: Promise<Finished>;
}

export interface CommandOptions {
  environment?: Record<string, string>;
  input?: string;
  directory?: string;
}

const WITHIN_MS = 60_000;

export function startCommand(url: string, line: readonly string[], { environment = {}, input = "", directory }: CommandOptions = {}): RunningCommand {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", join(root, "cli", "main.ts"), ...line], {
    env: { PATH: process.env["PATH"], CURFEW_URL: url, ...environment },
    cwd: directory,
    timeout: WITHIN_MS,
  });
  const printed = { out: "", errors: "" };
  child.stdout.on("data", (chunk) => (printed.out += chunk));
  child.stderr.on("data", (chunk) => (printed.errors += chunk));
  // It may have ended before it reads.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...printed }));
  });
  return { process: child, printed, finished };
}

export const runCommand = (url: string, line: readonly string[], options?: CommandOptions): Promise<Finished> => startCommand(url, line, options).finished;
