// The deployment: wrangler accepts the configurations, the bundle is small, the executor is not reachable from outside.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { compatibility, root, startCurfew } from "./harness.ts";

const GZIP_KIB_MAX = 2256;
const COORDINATOR = "examples/separate-executor/coordinator.toml";
const EXECUTOR = "examples/separate-executor/executor.toml";
const CONFIGURATIONS = ["wrangler.toml", COORDINATOR, EXECUTOR];
const outputDirectory = mkdtempSync(join(tmpdir(), "curfew-bundle-"));
after(() => rmSync(outputDirectory, { recursive: true, force: true }));

/** Without comments. */
const settingsOf = (configuration: string): string => readFileSync(join(root, configuration), "utf8").replace(/^\s*#.*$/gm, "");

async function dryRun(configuration: string): Promise<string> {
  const wrangler = join(root, "node_modules", "wrangler", "bin", "wrangler.js");
  const args = [wrangler, "deploy", "--dry-run", "-c", configuration, "--outdir", join(outputDirectory, configuration)];
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false", WRANGLER_HIDE_BANNER: "true" };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env, timeout: 60_000 });
  return stdout;
}

for (const [configuration, bindings] of [
  ["wrangler.toml", ["env.RUNS (RunObject)", "env.BREAKERS (BreakerObject)", "env.DB (curfew)", "env.INDEX_QUEUE (curfew-index)", "env.TASK_QUEUE (curfew-tasks)"]],
  [COORDINATOR, ["env.RUNS (RunObject)", "env.BREAKERS (BreakerObject, defined in curfew-executor)", "env.DB (curfew)", "env.EXECUTOR (curfew-executor)", "env.INDEX_QUEUE (curfew-index)", "env.TASK_QUEUE (curfew-tasks)"]],
  [EXECUTOR, ['env.CURFEW_ROLE ("executor")', "env.BREAKERS (BreakerObject)", "env.INDEX_QUEUE (curfew-index)"]],
] as const) {
  test(`wrangler accepts ${configuration}`, async () => {
    const output = await dryRun(configuration);
    for (const binding of bindings) assert.ok(output.includes(binding), `no ${binding} in\n${output}`);
    const size = /gzip: ([\d.]+) KiB/.exec(output)?.[1];
    assert.ok(size, output);
    assert.ok(Number(size) < GZIP_KIB_MAX, `${size} KiB gzipped; the limit is ${GZIP_KIB_MAX}`);
  });
}

test("the deployed executor calls no private addresses, and the deployed API is not in development", () => {
  for (const configuration of CONFIGURATIONS) assert.doesNotMatch(settingsOf(configuration), /CURFEW_ALLOW_PRIVATE|CURFEW_DEV/);
});

test("one Worker has no role, and no executor but its own", () => {
  assert.doesNotMatch(settingsOf("wrangler.toml"), /CURFEW_ROLE|EXECUTOR/);
});

test("a request to the own domain goes through Cloudflare's front door, and versions have no address of their own", () => {
  for (const configuration of CONFIGURATIONS) {
    const settings = settingsOf(configuration);
    // Before the first table, or it would be a key of that table.
    const top = settings.slice(0, settings.search(/^\[/m));
    assert.match(top, /^compatibility_flags = \[.*"global_fetch_strictly_public".*\]$/m, configuration);
    assert.match(top, /^preview_urls = false$/m, configuration);
  }
});

test("a separate executor has no public address", () => {
  const settings = settingsOf(EXECUTOR);
  assert.match(settings, /^workers_dev = false$/m);
  assert.match(settings, /^preview_urls = false$/m);
  assert.doesNotMatch(settings, /route|custom_domain/);
});

test("no public request reaches the executor, or internal routes of a run object", async () => {
  const curfew = await startCurfew();
  try {
    const task = { run_id: "x", token_id: "t1", epoch: 1, task: { id: "t", steps: [] }, input: {}, deadline_at: null };
    const internalPaths = ["/claim", "/heartbeat", "/report", "/lost", "/probe", "/requests/2"];
    const paths = ["/", "/execute", "/run", "/task", "/tasks", "/dispatch", "/abort", "/internal", "/result", "/results", ...internalPaths];
    for (const path of [...paths, ...internalPaths.map((path) => `/v1/runs/x${path}`)]) {
      const response = await curfew.api("POST", path, task);
      assert.ok([400, 404, 405].includes(response.status), `POST ${path}: ${response.status} ${response.text}`);
    }
  } finally {
    await curfew.dispose();
  }
});

test("tests use the deployed compatibility settings", () => {
  for (const configuration of CONFIGURATIONS) {
    const settings = settingsOf(configuration);
    assert.ok(settings.includes(`compatibility_date = "${compatibility.compatibilityDate}"`), configuration);
    const flags = /^compatibility_flags = (.*)$/m.exec(settings)?.[1] ?? "[]";
    assert.deepEqual(JSON.parse(flags), compatibility.compatibilityFlags, configuration);
  }
});

test("both queues have a consumer, and the queue lane is off by default", () => {
  for (const configuration of ["wrangler.toml", COORDINATOR]) {
    const settings = settingsOf(configuration);
    const consumers = settings.split("[[queues.consumers]]").slice(1);
    assert.deepEqual(consumers.map((one) => /queue = "([^"]*)"/.exec(one)?.[1]), ["curfew-index", "curfew-tasks"]);
    assert.doesNotMatch(settings, /CURFEW_QUEUE/);
  }
});

test("the sweep is called every minute", () => {
  for (const configuration of ["wrangler.toml", COORDINATOR]) {
    assert.match(settingsOf(configuration), /^\[triggers\]\ncrons = \["\* \* \* \* \*"\]$/m);
  }
  assert.doesNotMatch(settingsOf(EXECUTOR), /crons/);
});

test("the lock file names no registry", () => {
  assert.doesNotMatch(readFileSync(join(root, "package-lock.json"), "utf8"), /"resolved": "http/);
});

test("every path of the API reaches the Worker, and every other one is a page of the dashboard", () => {
  const { paths } = JSON.parse(readFileSync(join(root, "src/api/openapi.json"), "utf8"));
  for (const configuration of ["wrangler.toml", COORDINATOR]) {
    const settings = settingsOf(configuration);
    assert.match(settings, /^not_found_handling = "single-page-application"$/m, configuration);
    const first: string[] = JSON.parse(/^run_worker_first = (\[.*\])$/m.exec(settings)?.[1] ?? "[]");
    const isCovered = (path: string) => first.some((pattern) => (pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern));
    assert.deepEqual(Object.keys(paths).filter((path) => !isCovered(path)), [], configuration);
    assert.ok(!["/", "/runs", "/runs/x", "/health"].some(isCovered), configuration);
  }
});
