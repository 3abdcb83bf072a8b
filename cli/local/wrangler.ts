// Calls wrangler, which comes with this package, so that it does the same on every machine.
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { withoutColours } from "../terminal_text.ts";

export interface Wrangler {
  node: string;
  directory: string;
  environment: NodeJS.ProcessEnv;
}

/** The program of the package `wrangler`. */
function program(): string {
  const manifest = createRequire(import.meta.url).resolve("wrangler/package.json");
  return join(dirname(manifest), "bin", "wrangler.js");
}

/** A project's own settings of wrangler count before these. */
export function wranglerIn(directory: string, node: string, more: NodeJS.ProcessEnv = {}): Wrangler {
  const environment = {
    WRANGLER_SEND_METRICS: "false",
    // The banner asks the registry for a newer version.
    WRANGLER_HIDE_BANNER: "true",
    // No request.cf from Cloudflare's servers.
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
    ...process.env,
    ...more,
    // Build commands of a configuration use the same Node.
    PATH: [dirname(node), process.env["PATH"]].join(process.platform === "win32" ? ";" : ":"),
  };
  return { node, directory, environment };
}

/** How long wrangler may take to end in order. */
export const STOPPED_WITHIN_MS = 5_000;

/**
 * Loaded into wrangler before it starts, and by wrangler into the process that it starts: each ends when its parent is gone. A parent that
 * is killed stops nothing, and the server would go on with its port and its files. Windows does not show that a parent is gone.
 */
const endsWithParent = (isGroup: boolean): string => `
  import { isMainThread } from "node:worker_threads";
  const parent = process.ppid;
  const timer = isMainThread && setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
    ${isGroup ? `setTimeout(() => process.kill(0, "SIGKILL"), ${STOPPED_WITHIN_MS}).unref();` : ""}
  }, 500).unref();`;

export interface SpawnOptions {
  /** Where it prints: to this process, into a pipe, or to a file that is open. */
  stdio: "inherit" | "pipe" | number;
  /** Its processes are a group of their own, which `kill(-pid)` ends as a whole: that of the Worker outlives a wrangler that is killed. */
  isGroup?: boolean;
}

/** A wrangler that goes on until it is stopped, or this process is gone. */
export function spawnWrangler({ node, directory, environment }: Wrangler, args: string[], { stdio, isGroup = false }: SpawnOptions): ChildProcess {
  const preload = ["--import", `data:text/javascript,${encodeURIComponent(endsWithParent(isGroup && HAS_GROUPS))}`];
  return spawn(node, [...preload, program(), ...args], { cwd: directory, env: environment, stdio: ["ignore", stdio, stdio], detached: isGroup && HAS_GROUPS });
}

const HAS_GROUPS = process.platform !== "win32";

/** Ends a wrangler with `isGroup` that does not end in order, with all its processes. */
export function killWrangler(child: ChildProcess): void {
  if (!HAS_GROUPS || child.pid === undefined) return void child.kill("SIGKILL");
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

/** Runs wrangler to its end, or until `signal`. With `isQuiet` what it prints is part of the error only. */
export function runWrangler(wrangler: Wrangler, args: string[], { isQuiet = false, signal }: { isQuiet?: boolean; signal?: AbortSignal } = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawnWrangler(wrangler, args, { stdio: isQuiet ? "pipe" : "inherit" });
    signal?.addEventListener("abort", () => child.kill("SIGTERM"));
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (text += chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`wrangler ${args.slice(0, 3).join(" ")} failed (${signal ?? `exit code ${code}`})\n${withoutColours(text)}`.trimEnd()));
    });
  });
}
