// What the scripts print: a line per step with the seconds it took, and the output of long commands as it comes.
import { spawn } from "node:child_process";

/**
 * Runs one step and prints how long it took. A text that `work` returns is printed in the same line.
 * @template T
 * @param {string} title
 * @param {() => T | Promise<T>} work
 * @param {string} [announcement] printed before a step that may take long
 * @returns {Promise<T>}
 */
export async function step(title, work, announcement) {
  if (announcement) console.log(`[curfew] ${announcement} ...`);
  const startedAt = Date.now();
  const result = await work();
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  const detail = typeof result === "string" ? `: ${result}` : "";
  console.log(`[curfew] ${title}${detail} (${seconds} s)`);
  return result;
}

/** An error whose message is all the reader needs: no stack is printed for it. */
export class StepFailed extends Error {}

/**
 * Runs a command with its output on ours, unless `stdio` says otherwise. Rejects with the command line when it fails.
 * @param {string} command
 * @param {string[]} args
 * @param {{env?: NodeJS.ProcessEnv, cwd?: string, stdio?: import("node:child_process").StdioOptions}} [options]
 * @returns {Promise<void>}
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"], ...options });
    child.on("error", (error) => reject(new StepFailed(`cannot start ${command}: ${error.message}`)));
    child.on("close", (code, signal) => {
      if (code === 0) resolve();
      else reject(new StepFailed(`${[command, ...args].join(" ")} failed (${signal ?? `exit code ${code}`})`));
    });
  });
}

/**
 * The standard output of a short command, or undefined if it cannot be run.
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string}} [options]
 * @returns {Promise<string | undefined>}
 */
export function outputOf(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"], ...options });
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.on("error", () => resolve(undefined));
    child.on("close", (code) => resolve(code === 0 ? text.trim() : undefined));
  });
}

/**
 * The body of a script: a failed step ends it with its message and exit code 1.
 * @param {() => Promise<void>} body
 */
export async function script(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    console.error(`[curfew] ${error.message}`);
    process.exitCode = 1;
  }
}
