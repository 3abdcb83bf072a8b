// The npm package as a new user meets it: an empty directory, no Rust on the PATH, the tarball and what npm installs with it. It runs on the
// Node that the machine has, because that is the one a user has.
import assert from "node:assert/strict";
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { until } from "../workerd/poll.ts";

const STEP_MS = 120_000;
const QUIET = ["--prefer-offline", "--no-audit", "--no-fund"];

const isRust = (directory: string): boolean => ["cargo", "rustup", "rustc"].some((tool) => existsSync(join(directory, tool)));

/** The PATH without cargo and rustup, and without the programs of the repository. */
const path = (process.env["PATH"] ?? "")
  .split(delimiter)
  .filter((entry) => !entry.includes("node_modules") && !isRust(entry))
  .join(delimiter);

/** `directory` has what the tests leave, so that no other Curfew of this machine sees their Workers. */
export function environmentIn(directory: string): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, PATH: path, NO_COLOR: "1" };
  for (const name of Object.keys(env)) if (/^(npm_|CURFEW_|CARGO|RUST|NODE_)/i.test(name)) delete env[name];
  return { ...env, WRANGLER_REGISTRY_PATH: join(directory, "registry"), WRANGLER_SEND_METRICS: "false" };
}

/** What a user does in a directory. */
export class Shell {
  readonly directory: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.directory = directory;
    this.#env = env;
  }

  /** Returns what it printed. */
  async call(command: string, ...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(command, args, { cwd: this.directory, env: this.#env, timeout: STEP_MS, maxBuffer: 1 << 24 });
    return stdout;
  }

  /** What `npx curfew` answers. */
  async json(...args: string[]): Promise<any> {
    return JSON.parse(await this.call("npx", "curfew", ...args, "--json"));
  }

  /** `npm install`. */
  async install(...packages: string[]): Promise<void> {
    await this.call("npm", "install", ...QUIET, ...packages);
  }

  /** Not by npx, which would not pass a signal on to its child. */
  spawn(program: string, more: NodeJS.ProcessEnv, ...args: string[]): ChildProcess {
    return spawn(program, args, { cwd: this.directory, env: { ...this.#env, ...more }, stdio: ["ignore", "pipe", "pipe"] });
  }

  /** `curfew dev`, as long as `use` needs it. */
  async withDev<T>(use: (url: string) => Promise<T>): Promise<T> {
    const dev = this.spawn(join(this.directory, "node_modules", ".bin", "curfew"), {}, "dev", "--port", "0", "--json");
    try {
      return await use(JSON.parse(await printed(dev, /^.*\n/)).url);
    } finally {
      assert.equal(await stopped(dev), 0, "curfew dev ends in order");
    }
  }
}

/** The part of the standard output that matches, as soon as it is there. */
export function printed(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let [output, errors] = ["", ""];
    child.stdout!.on("data", (chunk) => {
      output += chunk;
      const match = pattern.exec(output);
      if (match) resolve(match[0]);
    });
    child.stderr!.on("data", (chunk) => (errors += chunk));
    child.on("close", (code) => reject(new Error(`${child.spawnargs.join(" ")} ended (${code}): ${output}${errors}`)));
  });
}

/** Ends it; its exit code. */
export async function stopped(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  const closed = new Promise<number | null>((resolve) => child.on("close", resolve));
  child.kill("SIGTERM");
  return closed;
}

/** From an empty directory to a completed run, which `curfew dev` makes there by itself. Then `use` may go on with it. */
export async function firstRun(shell: Shell, tarball: string, use: (url: string) => Promise<void> = async () => {}): Promise<{ took_ms: number }> {
  assert.equal(path.split(delimiter).some(isRust), false);
  const startedAt = performance.now();
  mkdirSync(shell.directory);
  await shell.call("npm", "init", "-y");
  await shell.install(tarball);
  return shell.withDev(async (url) => {
    // Lists follow within a second or two.
    const { items } = await until("the run in the list", async () => {
      const page = await shell.json("runs", "--url", url);
      return page.items.length > 0 && page;
    });
    const took_ms = performance.now() - startedAt;
    assert.deepEqual(items.map((run: any) => [run.workflow_id, run.status]), [["hello", "completed"]]);
    await use(url);
    return { took_ms };
  });
}
