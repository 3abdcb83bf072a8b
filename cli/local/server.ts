// Curfew on this machine: the local database with its migrations, `wrangler dev`, and the sweep that `wrangler dev` does not trigger.
import { closeSync, existsSync, linkSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { CommandError } from "../failures.ts";
import { withoutColours } from "../terminal_text.ts";
import { node22 } from "./node22.ts";
import { killWrangler, runWrangler, spawnWrangler, STOPPED_WITHIN_MS, wranglerIn } from "./wrangler.ts";

const READY_WITHIN_MS = 60_000;
/** A server whose `curfew dev` was killed ends by itself. */
const ENDED_WITHIN_MS = STOPPED_WITHIN_MS + 5_000;
const SWEEP_EVERY_MS = 60_000;
/** How much of the log an error shows. */
const TAIL_CHARACTERS = 4_000;

export interface LocalOptions {
  /** A file of wrangler. */
  configuration: string;
  /** 0 is any free one. */
  port: number;
  /** Where everything that Curfew stores is kept. */
  persistTo: string;
  /** What wrangler and the Worker print is shown; otherwise it is in the file of `logFile`. */
  showsLogs?: boolean;
  /** Variables of the Worker, beside those of development. */
  variables?: Record<string, string>;
  /** What takes a while, for people. */
  note: (line: string) => void;
  /** Stops the start. */
  signal?: AbortSignal;
}

export interface LocalServer {
  url: string;
  /** Rejects when the server ends by itself. */
  ended: Promise<never>;
  stop(): Promise<void>;
}

/** The output of wrangler and of the Worker, of the last start. */
export const logFile = (persistTo: string): string => join(persistTo, "dev.log");

/** The directory where everything is stored. */
export function makeStore(persistTo: string): void {
  try {
    mkdirSync(persistTo, { recursive: true });
    // It holds data of runs, and belongs into no repository.
    writeFileSync(join(persistTo, ".gitignore"), "*\n");
  } catch (error) {
    throw new CommandError(`${persistTo} is no directory that can be written: ${(error as Error).message}`, { next: "choose where everything is stored with --persist <directory>" });
  }
}

/** Resolves when it answers. Its processes have ended when it rejects. */
export async function startLocal(options: LocalOptions): Promise<LocalServer> {
  const { configuration, persistTo, note, signal = new AbortController().signal } = options;
  await waitUntilUnused(persistTo, note, signal);
  const port = await freePort(options.port);
  const url = `http://localhost:${port}`;
  const directory = dirname(configuration);
  const wrangler = wranglerIn(directory, await node22(note, signal), { WRANGLER_LOG_PATH: join(persistTo, "logs") });
  makeStore(persistTo);
  const lock = lockOf(persistTo);
  // A reader never finds half of it.
  const written = `${lock}.${process.pid}`;
  const write = (server?: number) => writeFileSync(written, JSON.stringify({ pid: process.pid, server, url } satisfies Lock));
  const release = () => rmSync(lock, { force: true });
  write();
  try {
    await take(persistTo, written, note, signal);
  } finally {
    rmSync(written, { force: true });
  }
  const storage = ["--persist-to", persistTo, "-c", configuration];
  try {
    await runWrangler(wrangler, ["d1", "migrations", "apply", "DB", "--local", ...storage], { isQuiet: true, signal });
    signal.throwIfAborted();
  } catch (error) {
    release();
    throw error;
  }
  const network = ["--ip", "127.0.0.1", "--port", String(port), "--inspector-port", "0", "--show-interactive-dev-session=false"];
  const variables = Object.entries(developmentVariables(directory, url, options.variables)).flatMap(([name, value]) => ["--var", `${name}:${value}`]);
  const log = logFile(persistTo);
  const descriptor = options.showsLogs ? undefined : openSync(log, "w");
  const child = spawnWrangler(wrangler, ["dev", ...storage, ...network, ...variables], { stdio: descriptor ?? "inherit", isGroup: true });
  write(child.pid);
  renameSync(written, lock);
  if (descriptor !== undefined) closeSync(descriptor);
  const failure = (what: string) => new Error(`${what}\n${descriptor === undefined ? "" : withoutColours(readFileSync(log, "utf8")).slice(-TAIL_CHARACTERS)}`.trimEnd());
  const ended = new Promise<never>((_, reject) => {
    child.on("error", reject);
    child.on("close", (code) => reject(failure(`wrangler dev ended (exit code ${code})`)));
  });
  // It may reject before it is awaited.
  ended.catch(() => {});
  const sweep = setInterval(() => void fetch(`${url}/cdn-cgi/local/scheduled`, { signal: AbortSignal.timeout(SWEEP_EVERY_MS) }).catch(() => {}), SWEEP_EVERY_MS);
  const stop = async (): Promise<void> => {
    clearInterval(sweep);
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      const deadline = setTimeout(() => killWrangler(child), STOPPED_WITHIN_MS);
      await ended.catch(() => {});
      clearTimeout(deadline);
    }
    // Not before: the next server would find the files in use.
    release();
  };
  try {
    const isReady = await Promise.race([answers(url, signal), ended, abortOf(signal)]);
    // Wrangler may have refused something and wait for a change of it.
    if (!isReady) throw failure(`${url}/healthz did not answer within ${READY_WITHIN_MS / 1_000} s`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, ended, stop };
}

/** What `dev.lock` in the directory of the store says. */
interface Lock {
  /** Of the command line. */
  pid: number;
  /** Of the server, as soon as it is started. */
  server?: number | undefined;
  url: string;
}

const lockOf = (persistTo: string): string => join(persistTo, "dev.lock");

/** Two servers over the same files would each miss what the other writes. */
async function waitUntilUnused(persistTo: string, note: (line: string) => void, signal: AbortSignal): Promise<void> {
  const { pid, server, url } = lockIn(persistTo);
  const refusal = (process: number) => new Error(`${persistTo} is used by process ${process} (${url}): stop it, or choose another directory with --persist; if it is not one of Curfew, remove ${lockOf(persistTo)}`);
  if (pid !== process.pid && isAlive(pid)) throw refusal(pid);
  if (!isAlive(server)) return;
  note(`waiting for the end of process ${server}, the server of a \`curfew dev\` that was killed ...`);
  const deadline = Date.now() + ENDED_WITHIN_MS;
  while (isAlive(server)) {
    if (Date.now() > deadline) throw refusal(server);
    await new Promise((resolve) => setTimeout(resolve, 100));
    signal.throwIfAborted();
  }
}

/** Puts `written` in the place of the lock, where there is none or that of a server which has ended. Of several at once only one can. */
async function take(persistTo: string, written: string, note: (line: string) => void, signal: AbortSignal): Promise<void> {
  for (;;) {
    await waitUntilUnused(persistTo, note, signal);
    rmSync(lockOf(persistTo), { force: true });
    try {
      // Unlike a rename it does not replace what is there.
      return linkSync(written, lockOf(persistTo));
    } catch (error) {
      // A file system without links.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") return renameSync(written, lockOf(persistTo));
    }
  }
}

function lockIn(persistTo: string): Partial<Lock> {
  try {
    return JSON.parse(readFileSync(lockOf(persistTo), "utf8")) as Lock;
  } catch {
    // There is none.
    return {};
  }
}

function isAlive(pid: number | undefined): pid is number {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user may not be asked.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * Requests need no token, and first workflows usually call an address on this machine; a deployed Worker has neither. Tokens and addresses
 * in .dev.vars count.
 */
function developmentVariables(directory: string, url: string, more: Record<string, string> = {}): Record<string, string> {
  const file = join(directory, ".dev.vars");
  const written = existsSync(file) ? readFileSync(file, "utf8") : "";
  const all = { CURFEW_DEV: "on", CURFEW_ALLOW_PRIVATE: "on", CURFEW_PUBLIC_URL: url, ...more };
  return Object.fromEntries(Object.entries(all).filter(([name]) => !new RegExp(`^${name}\\s*=`, "m").test(written)));
}

async function freePort(wanted: number): Promise<number> {
  const port = await listened(wanted, "127.0.0.1");
  // A process there would get what is sent to localhost.
  await listened(port, "::1").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EADDRINUSE") throw error;
  });
  return port;
}

/** The port of a server that has ended again. */
function listened(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", ({ code }: NodeJS.ErrnoException) => {
      const problem = code === "EADDRINUSE" ? "is in use: stop the process that uses it, or choose" : `cannot be used (${code}): choose`;
      reject(Object.assign(new Error(`port ${port} ${problem} another with --port`), { code }));
    });
    probe.listen(port, host, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address ? address.port : port));
    });
  });
}

/** Whether it answered in time. */
async function answers(url: string, stopped: AbortSignal): Promise<boolean> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (Date.now() < deadline && !stopped.aborted) {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
    if (response?.ok) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

const abortOf = (signal: AbortSignal): Promise<never> => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
