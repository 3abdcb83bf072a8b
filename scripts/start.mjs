// `npm start`: set-up, local D1, the Worker on this machine, the examples stored, then prints three commands to try.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setUp } from "./setup.mjs";
import { run, script, step, StepFailed } from "./terminal.mjs";
import { node22, quietEnvironment, root, wrangler } from "./toolchain.mjs";

const port = Number(process.env.PORT || 8787);
const address = `http://localhost:${port}`;
const READY_WITHIN_MS = 60_000;
const SWEEP_EVERY_MS = 60_000;

const environment = {
  ...quietEnvironment,
  // Everything that `npm start` writes is in one directory, which can be deleted.
  WRANGLER_REGISTRY_PATH: join(root, ".dev", "registry"),
  WRANGLER_LOG_PATH: join(root, ".dev", "logs"),
};

await script(async () => {
  await step(`port ${port}`, portIsFree);
  await setUp();
  await step("local D1", migrate);
  const worker = startWorker();
  const stop = stopWith(worker);
  try {
    await step("Worker", () => Promise.race([healthy(), worker.ended]));
    await step("examples", () => Promise.race([storeExamples(), worker.ended]));
    printCommands();
    sweepEveryMinute();
    await worker.ended;
  } catch (error) {
    // After Ctrl-C the end of the Worker is no failure.
    if (!stop.requested) throw error;
  } finally {
    stop.now();
  }
});

/** @returns {Promise<string>} */
function portIsFree() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", () => reject(new StepFailed(`port ${port} is in use: stop the process that uses it, or run PORT=8788 npm start`)));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve("free")));
  });
}

function migrate() {
  const args = ["d1", "migrations", "apply", "curfew", "--local", "--persist-to", ".dev", "-c", "wrangler.toml"];
  return run(node22(), [wrangler, ...args], { cwd: root, env: environment });
}

function startWorker() {
  const network = ["--ip", "127.0.0.1", "--port", String(port), "--inspector-port", "0"];
  // Callbacks come in at this port, unless .dev.vars names another way in.
  const variables = existsSync(join(root, ".dev.vars")) ? readFileSync(join(root, ".dev.vars"), "utf8") : "";
  const publicUrl = /^CURFEW_PUBLIC_URL\s*=/m.test(variables) ? [] : ["--var", `CURFEW_PUBLIC_URL:http://localhost:${port}`];
  // Tokens in .dev.vars are needed all the same. First workflows usually call an address on this machine; the deployed configuration
  // must not allow it.
  const development = ["--var", "CURFEW_DEV:on", "--var", "CURFEW_ALLOW_PRIVATE:on"];
  const rest = ["--persist-to", ".dev", "--show-interactive-dev-session=false", ...development, ...publicUrl];
  const child = spawn(node22(), [wrangler, "dev", "-c", "wrangler.toml", ...network, ...rest], {
    cwd: root,
    env: environment,
    stdio: ["ignore", "inherit", "inherit"],
  });
  /** @type {Promise<never>} */
  const ended = new Promise((_, reject) => {
    child.on("close", (code) => reject(new StepFailed(`wrangler dev ended (exit code ${code})`)));
  });
  // It may reject before it is awaited.
  ended.catch(() => {});
  return { child, ended };
}

/** The terminal sends Ctrl-C to wrangler, too; a plain `kill` reaches this script only. @param {ReturnType<typeof startWorker>} worker */
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

async function healthy() {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (Date.now() < deadline) {
    const response = await fetch(`${address}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
    if (response?.ok) return address;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new StepFailed(`${address}/healthz did not answer within ${READY_WITHIN_MS / 1000} s`);
}

/** A parent is refused until its children are stored: refused ones are tried again as long as a pass stores any. */
async function storeExamples() {
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

/** `wrangler dev` triggers no cron. A failed sweep is in the Worker's log, and the next follows a minute later. */
function sweepEveryMinute() {
  const sweep = () => fetch(`${address}/cdn-cgi/local/scheduled`, { signal: AbortSignal.timeout(SWEEP_EVERY_MS) }).catch(() => {});
  setInterval(sweep, SWEEP_EVERY_MS).unref();
}

function printCommands() {
  console.log(`
Curfew is ready on ${address}. Try:

  curl -X POST ${address}/v1/workflows/hello/runs -d '{"run_id": "first", "input": {"name": "Ada"}}'
  curl '${address}/v1/runs/first?wait_ms=10000'
  curl ${address}/v1/runs

Ctrl-C ends it. What it stored is kept in .dev/ for the next start.
`);
}
