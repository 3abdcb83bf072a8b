// Calls wrangler, which comes with this package, so that it does the same on every machine.
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

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

/**
 * Loaded into wrangler before it starts, and by wrangler into the process that it starts: each ends when its parent is gone. A parent that
 * is killed stops nothing, and the server would go on with its port and its files. Windows does not show that a parent is gone.
 */
const ENDS_WITH_PARENT = `
  import { isMainThread } from "node:worker_threads";
  const parent = process.ppid;
  const timer = isMainThread && setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, 500).unref();`;

/** A wrangler that goes on until it is stopped, or this process is gone. What it prints goes to this process, to a file that is open, or into a pipe. */
export function spawnWrangler({ node, directory, environment }: Wrangler, args: string[], stdio: "inherit" | "pipe" | number): ChildProcess {
  const preload = ["--import", `data:text/javascript,${encodeURIComponent(ENDS_WITH_PARENT)}`];
  return spawn(node, [...preload, program(), ...args], { cwd: directory, env: environment, stdio: ["ignore", stdio, stdio] });
}

/** Runs wrangler to its end, or until `signal`. With `isQuiet` what it prints is part of the error only. */
export function runWrangler(wrangler: Wrangler, args: string[], { isQuiet = false, signal }: { isQuiet?: boolean; signal?: AbortSignal } = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawnWrangler(wrangler, args, isQuiet ? "pipe" : "inherit");
    signal?.addEventListener("abort", () => child.kill("SIGTERM"));
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (text += chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`wrangler ${args.slice(0, 3).join(" ")} failed (${signal ?? `exit code ${code}`})\n${text}`.trimEnd()));
    });
  });
}
