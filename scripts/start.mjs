// `npm start`: set-up, local D1, both Workers on this machine, the examples stored, then prints three commands to try.
import { spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { node22, quietEnvironment, root, wrangler } from "./toolchain.mjs";

const READY_WITHIN_MS = 60_000;
const SWEEP_EVERY_MS = 60_000;

/**
 * A Curfew on this machine.
 * @typedef {object} Local
 * @property {number} port
 * @property {string} directory everything that it writes is there, and can be deleted
 * @property {Record<string, string>} [variables] more variables of the coordinator
 * @property {import("node:child_process").StdioOptions} [stdio] where the output of wrangler goes; by default to ours
 */

/** @param {Local} local */
const addressOf = ({ port }) => `http://localhost:${port}`;

/** @param {Local} local */
const environmentOf = ({ directory }) => ({
  ...quietEnvironment,
  WRANGLER_REGISTRY_PATH: join(directory, "registry"),
  WRANGLER_LOG_PATH: join(directory, "logs"),
});

/**
 * The tables of D1, then the Workers; resolves when they answer. `ended` rejects when they end, also after `stop`.
 * @param {Local} local
 */
export async function startLocal(local) {
  await step("local D1", () => migrate(local));
  const workers = startWorkers(local);
  const stop = stopWith(workers);
  try {
    await step("Workers", () => Promise.race([healthy(local), workers.ended]));
  } catch (error) {
    stop.now();
    throw error;
  }
  return { address: addressOf(local), ended: workers.ended, stop };
}

// `npm start` runs this file; `npm run example` imports it.
if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await script(start);

async function start() {
  /** @type {Local} */
  const local = { port: Number(process.env.PORT || 8787), directory: join(root, ".dev") };
  await step(`port ${local.port}`, () => portIsFree(local));
  await setUp();
  const curfew = await startLocal(local);
  try {
    await step("examples", () => Promise.race([storeExamples(curfew), curfew.ended]));
    printCommands(curfew);
    sweepEveryMinute(curfew);
    await curfew.ended;
  } catch (error) {
    // After Ctrl-C the end of the Workers is no failure.
    if (!curfew.stop.requested) throw error;
  } finally {
    curfew.stop.now();
  }
}

/** @param {Local} local @returns {Promise<string>} */
function portIsFree({ port }) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", () => reject(new StepFailed(`port ${port} is in use: stop the process that uses it, or run PORT=8788 npm start`)));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve("free")));
  });
}

/** @param {Local} local */
function migrate(local) {
  const args = ["d1", "migrations", "apply", "curfew", "--local", "--persist-to", local.directory, "-c", "wrangler.toml"];
  return run(node22(), [wrangler, ...args], { cwd: root, env: environmentOf(local), ...(local.stdio ? { stdio: local.stdio } : {}) });
}

/**
 * The executor's configuration with one more variable: first workflows usually call an address on this machine. `--var` reaches only
 * the first Worker, and the deployed configuration must not have it.
 * @param {Local} local
 */
function localExecutor({ directory }) {
  const deployed = readFileSync(join(root, "wrangler.executor.toml"), "utf8");
  const local = deployed
    .replace('main = "src/', `main = "${root.replaceAll("\\", "/")}src/`)
    .replace(/^\[vars\]$/m, '[vars]\nCURFEW_ALLOW_PRIVATE = "on"')
    // The coordinator's configuration runs the same build.
    .replace(/^\[build\]\ncommand = .*\n/m, "");
  const path = join(directory, "wrangler.executor.toml");
  mkdirSync(directory, { recursive: true });
  writeFileSync(path, local);
  // wrangler reads .dev.vars next to the configuration.
  if (existsSync(join(root, ".dev.vars"))) copyFileSync(join(root, ".dev.vars"), join(directory, ".dev.vars"));
  return path;
}

/** @param {Local} local */
function startWorkers(local) {
  const { port, directory, variables: more = {}, stdio = ["ignore", "inherit", "inherit"] } = local;
  const configurations = ["-c", "wrangler.toml", "-c", localExecutor(local)];
  const network = ["--ip", "127.0.0.1", "--port", String(port), "--inspector-port", "0"];
  // Callbacks come in at this port, unless .dev.vars names another way in. `--var` reaches the coordinator.
  const variables = existsSync(join(root, ".dev.vars")) ? readFileSync(join(root, ".dev.vars"), "utf8") : "";
  const publicUrl = /^CURFEW_PUBLIC_URL\s*=/m.test(variables) ? [] : ["--var", `CURFEW_PUBLIC_URL:http://localhost:${port}`];
  // Tokens in .dev.vars are needed all the same.
  const development = ["--var", "CURFEW_DEV:on", ...Object.entries(more).flatMap(([name, value]) => ["--var", `${name}:${value}`])];
  const rest = ["--persist-to", directory, "--show-interactive-dev-session=false", ...development, ...publicUrl];
  const child = spawn(node22(), [wrangler, "dev", ...configurations, ...network, ...rest], {
    cwd: root,
    env: environmentOf(local),
    stdio,
  });
  /** @type {Promise<never>} */
  const ended = new Promise((_, reject) => {
    child.on("close", (code) => reject(new StepFailed(`wrangler dev ended (exit code ${code})`)));
  });
  // It may reject before it is awaited.
  ended.catch(() => {});
  return { child, ended };
}

/** The terminal sends Ctrl-C to wrangler, too; a plain `kill` reaches this script only. @param {ReturnType<typeof startWorkers>} workers */
function stopWith({ child }) {
  const stop = {
    requested: false,
    now: () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    },
  };
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
    process.on(signal, () => {
      stop.requested = true;
      stop.now();
    });
  }
  return stop;
}

/** @param {Local} local */
async function healthy(local) {
  const address = addressOf(local);
  const deadline = Date.now() + READY_WITHIN_MS;
  while (Date.now() < deadline) {
    const response = await fetch(`${address}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
    if (response?.ok) return address;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new StepFailed(`${address}/healthz did not answer within ${READY_WITHIN_MS / 1000} s`);
}

/** A parent is refused until its children are stored: refused ones are tried again as long as a pass stores any. @param {{address: string}} curfew */
async function storeExamples({ address }) {
  const directory = join(root, "examples");
  const stored = [];
  let waiting = readdirSync(directory).filter((name) => name.endsWith(".json")).sort();
  while (waiting.length > 0) {
    const refused = [];
    let reason = "";
    for (const file of waiting) {
      const content = readFileSync(join(directory, file), "utf8");
      const { id } = JSON.parse(content);
      const response = await fetch(`${address}/v1/workflows/${id}`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: content,
      });
      if (response.ok) {
        stored.push(id);
        continue;
      }
      reason = `examples/${file} was refused: ${response.status} ${await response.text()}`;
      if (!reason.includes("unknown_reference")) throw new StepFailed(reason);
      refused.push(file);
    }
    if (refused.length === waiting.length) throw new StepFailed(reason);
    waiting = refused;
  }
  return stored.join(", ");
}

/** `wrangler dev` triggers no cron. A failed sweep is in the Workers' log, and the next follows a minute later. @param {{address: string}} curfew */
function sweepEveryMinute({ address }) {
  const sweep = () => fetch(`${address}/cdn-cgi/local/scheduled`, { signal: AbortSignal.timeout(SWEEP_EVERY_MS) }).catch(() => {});
  setInterval(sweep, SWEEP_EVERY_MS).unref();
}

/** @param {{address: string}} curfew */
function printCommands({ address }) {
  console.log(`
Curfew is ready on ${address}. Try:

  curl -X POST ${address}/v1/workflows/hello/runs -d '{"run_id": "first", "input": {"name": "Ada"}}'
  curl '${address}/v1/runs/first?wait_ms=10000'
  curl ${address}/v1/runs

Ctrl-C ends it. What it stored is kept in .dev/ for the next start.
`);
}
