// The npm package as a new user meets it: an empty directory, no Rust on the PATH, the tarball and what npm installs with it. It is run by
// `npm run package -- --check`, on the Node that the machine has, because that is the one a user has.
import assert from "node:assert/strict";
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { until } from "../workerd/poll.ts";

const tarball = process.env["CURFEW_TARBALL"];
assert.ok(tarball, "CURFEW_TARBALL names the tarball: `npm run package -- --check`");

/** The promise of the README. */
const FIRST_RUN_MS = 60_000;
const STEP_MS = 120_000;

const directory = mkdtempSync(join(tmpdir(), "curfew-package-"));
after(() => rmSync(directory, { recursive: true, force: true }));

/** Without cargo and rustup, and without the programs of the repository. */
const path = (process.env["PATH"] ?? "")
  .split(delimiter)
  .filter((entry) => !entry.includes("node_modules") && !["cargo", "rustup", "rustc"].some((tool) => existsSync(join(entry, tool))))
  .join(delimiter);
const env: NodeJS.ProcessEnv = { ...process.env, PATH: path, NO_COLOR: "1" };
for (const name of Object.keys(env)) if (/^(npm_|CURFEW_|CARGO|RUST|NODE_)/i.test(name)) delete env[name];

async function call(cwd: string, command: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd, env, timeout: STEP_MS, maxBuffer: 1 << 24 });
  return stdout;
}

const json = async (cwd: string, ...args: string[]) => JSON.parse(await call(cwd, "npx", "curfew", ...args, "--json"));

/** The address of a `curfew dev` that has begun to answer. */
function address(dev: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let [output, errors] = ["", ""];
    dev.stdout!.on("data", (chunk) => {
      output += chunk;
      if (output.includes("\n")) resolve(JSON.parse(output.slice(0, output.indexOf("\n"))).url);
    });
    dev.stderr!.on("data", (chunk) => (errors += chunk));
    dev.on("close", (code) => reject(new Error(`curfew dev ended (${code}): ${output}${errors}`)));
  });
}

async function withDev<T>(cwd: string, use: (url: string) => Promise<T>): Promise<T> {
  // Not by npx, which would not pass the signal on to its child.
  const dev = spawn(join(cwd, "node_modules", ".bin", "curfew"), ["dev", "--port", "0", "--json"], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  try {
    return await use(await address(dev));
  } finally {
    const closed = new Promise((resolve) => dev.on("close", resolve));
    dev.kill("SIGTERM");
    assert.equal(await closed, 0, "curfew dev ends in order");
  }
}

const first = join(directory, "first");
const project = join(directory, "project");

before(async () => {
  assert.equal(["cargo", "rustc"].some((tool) => path.split(delimiter).some((entry) => existsSync(join(entry, tool)))), false);
});

test("from an empty directory to a completed run within a minute", async (t) => {
  const startedAt = performance.now();
  mkdirSync(first);
  await call(first, "npm", "init", "-y");
  await call(first, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund", tarball);
  await withDev(first, async (url) => {
    // Lists follow within a second or two.
    const { items } = await until("the run in the list", async () => {
      const page = await json(first, "runs", "--url", url);
      return page.items.length > 0 && page;
    });
    assert.deepEqual(items.map((run: any) => [run.workflow_id, run.status]), [["hello", "completed"]]);
    const tookMs = performance.now() - startedAt;
    t.diagnostic(`${(tookMs / 1_000).toFixed(1)} s`);
    assert.ok(tookMs < FIRST_RUN_MS, `${tookMs} ms`);
    // And once more by hand.
    const run = await json(first, "start", "hello", "--input", '{"name": "Bob"}', "--wait", "--url", url);
    assert.deepEqual([run.status, run.output], ["completed", { greeting: "Hello, Bob!" }]);
  });
});

test("a project is laid out, type-checks, passes its test, is accepted by wrangler and runs", async () => {
  const { files } = await json(first, "init", "../project");
  for (const file of ["wrangler.toml", "src/worker.mts", "workflows/hello.mts", "test/hello.test.mts", "AGENTS.md", ".gitignore", "package.json"]) assert.ok(files.includes(file), file);
  // The version is not in a registry.
  const manifest = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
  assert.ok("curfew" in manifest.devDependencies);
  manifest.devDependencies.curfew = tarball;
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  await call(project, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund");
  await call(project, "npm", "run", "check");
  assert.match(await call(project, "npm", "test"), /# pass [1-9]|ℹ pass [1-9]/);
  await json(project, "deploy", "--dry-run");
  await withDev(project, async (url) => {
    const run = await json(project, "start", "hello", "--input", '{"name": "Ada"}', "--wait", "--url", url);
    assert.equal(run.status, "completed");
  });
});

test("nothing is overwritten", async () => {
  const refused = await call(first, "npx", "curfew", "init", "../project").catch((error: any) => error);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /wrangler\.toml.* there already; nothing was written/);
});

test("what it exports can be imported", async () => {
  const program = `
    import { createClient, CurfewError, defineWorkflow } from "curfew/client";
    import schema from "curfew/schema/workflow.json" with { type: "json" };
    console.log(typeof createClient, typeof defineWorkflow, CurfewError.name, schema.$schema);`;
  const output = await call(first, "node", "--input-type=module", "--eval", program);
  assert.match(output, /^function function CurfewError https:/);
});
