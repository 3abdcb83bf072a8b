// How the scripts speak: one line per step with the seconds it took, and the output of long commands as it comes.
import { spawn } from "node:child_process";

/**
 * Runs one step and prints how long it took. `work` may return a few words that are put in the line.
 * @template T
 * @param {string} title
 * @param {() => T | Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(title, work) {
  const startedAt = Date.now();
  const outcome = await work();
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  const words = typeof outcome === "string" ? `: ${outcome}` : "";
  console.log(`[curfew] ${title}${words} (${seconds} s)`);
  return outcome;
}

/** An error whose message is all the reader needs: no stack is printed for it. */
export class StepFailed extends Error {}

/**
 * Runs a command with its output on ours. Rejects with the command line when it fails.
 * @param {string} command
 * @param {string[]} args
 * @param {{env?: NodeJS.ProcessEnv, cwd?: string}} [options]
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
 * @returns {Promise<string | undefined>}
 */
export function outputOf(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"] });
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
