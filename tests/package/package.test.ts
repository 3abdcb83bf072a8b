// The npm package as a new user meets it, see installed.ts. `npm run package -- --check` runs it.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, sep } from "node:path";
import { after, test } from "node:test";
import { FIRST_RUN_S } from "../../bench/limits.ts";
import { root } from "../workerd/harness.ts";
import { until } from "../workerd/poll.ts";
import { environmentIn, firstRun, printed, Shell, stopped } from "./installed.ts";

const tarball = process.env["CURFEW_TARBALL"];
assert.ok(tarball, "CURFEW_TARBALL names the tarball: `npm run package -- --check`");

const directory = mkdtempSync(join(tmpdir(), "curfew-package-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const env = environmentIn(directory);
const first = new Shell(join(directory, "first"), env);
const project = new Shell(join(directory, "project"), env);

const inProject = (name: string) => readFileSync(join(project.directory, name), "utf8");

/** The program for Vitest on the page about testing, and one with a failure. */
const VITEST = {
  "page.test.ts": /^```ts vitest\n(.*?)^```/ms.exec(readFileSync(new URL("../../docs/testing.md", import.meta.url), "utf8"))![1]!,
  "failure.test.ts": `
    import { expect, test } from "vitest";
    import { curfewTest, matchers } from "curfew/testing";

    expect.extend(matchers);
    const pause = curfewTest({ workflow: { id: "pause", timeout: "168h", nodes: [{ id: "ask", gate: { timeout: "48h", on_timeout: "fail" } }] } });

    test("seven days", () => {
      const run = pause.start().advance("7d");
      expect(run).toHaveTimedOut("ask");
      expect(run).not.toHaveCompleted();
      expect(() => expect(pause.start()).toHaveCompleted()).toThrow(/expected the run to have completed; it is waiting\\n\\npause, limit 168h0m0s: waiting at 0s\\n/);
    });`,
};

test("from an empty directory to a completed run within a minute", async (t) => {
  const { took_ms } = await firstRun(first, tarball, async (url) => {
    // And once more by hand.
    const run = await first.json("start", "hello", "--input", '{"name": "Bob"}', "--wait", "--url", url);
    assert.deepEqual([run.status, run.output], ["completed", { greeting: "Hello, Bob!" }]);
  });
  t.diagnostic(`${(took_ms / 1_000).toFixed(1)} s`);
  // Where it is installed for the whole machine, the package belongs to another user.
  assert.equal(existsSync(join(first.directory, "node_modules", "curfew", ".wrangler")), false, "nothing is written into the package");
  assert.ok(took_ms < FIRST_RUN_S * 1_000, `${took_ms} ms`);
});

test("a project is laid out, type-checks, passes its test, is accepted by wrangler and runs", async () => {
  const { files } = await first.json("init", "../project");
  const { devDependencies } = JSON.parse(inProject("package.json"));
  assert.equal(join(project.directory, devDependencies.curfew.slice("file:".length)), tarball, "what `npm install` installs is what was installed here");
  for (const file of ["wrangler.toml", "src/worker.mts", "workflows/hello.mts", "test/hello.test.mts", "test/worker.test.mts", "AGENTS.md", ".gitignore", "package.json"]) assert.ok(files.includes(file), file);
  await project.install();
  await project.call("npm", "run", "check");
  const tested = await project.call("npm", "test");
  assert.match(tested, /# pass [1-9]|ℹ pass [1-9]/);
  assert.match(tested, /fails when nobody answers for five minutes/, "the test with curfew/testing ran");
  await project.json("deploy", "--dry-run");
  await project.withDev(async (url) => {
    const run = await project.json("start", "hello", "--input", '{"name": "Ada"}', "--wait", "--url", url);
    assert.equal(run.status, "completed");
    // The dashboard with the engine that simulates in the browser.
    assert.match(await (await fetch(url, { headers: { accept: "text/html" } })).text(), /<title>Curfew<\/title>/);
    const wasm = readdirSync(join(project.directory, "node_modules", "curfew", "dashboard", "assets")).find((name) => /^engine-\w{8}\.wasm$/.test(name));
    const served = await fetch(`${url}/assets/${wasm}`);
    assert.equal(Buffer.from(await served.arrayBuffer()).subarray(0, 4).toString(), "\0asm", `${served.status} ${served.headers.get("content-type")}`);
  });
});

test("its types need no library that is not named, and a declaration can name them", async () => {
  const program = `
    import { choice, createClient, defineWorkflow, type CurfewBinding } from "curfew/client";
    import { loadEngineSync } from "curfew/engine";
    import { curfewTest } from "curfew/testing";
    import { Api } from "curfew/worker";
    export const yes = choice("ask", "yes");
    export const pause = defineWorkflow({ id: "pause", nodes: [{ id: "ask", gate: { choices: ["yes", "no"] } }] });
    export const kit = curfewTest({ workflow: pause });
    export const client = (binding: CurfewBinding) => createClient({ binding });
    export const others = [loadEngineSync, Api];`;
  writeFileSync(join(project.directory, "exported.mts"), program);
  const options = ["--ignoreConfig", "--declaration", "--strict", "--skipLibCheck", "false", "--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext", "--types", "", "--outDir", "out"];
  await project.call(join(project.directory, "node_modules", ".bin", "tsc"), ...options, "exported.mts");
});

test("a Worker under a wrangler dev of its own calls the project's Curfew, and is called by it", async () => {
  // Both configurations as people copy them: a line of the project's wrangler.toml, and the binding that stands there as a comment.
  const configuration = inProject("wrangler.toml");
  const binding = /services = \[.*\]/.exec(configuration)?.[0];
  assert.ok(binding, configuration);
  const withPricing = configuration.replace(/^# (\[\[services\]\]|binding = "PRICING"|service = "pricing-worker")$/gm, "$1");
  assert.equal(withPricing.length, configuration.length - 3 * "# ".length);
  writeFileSync(join(project.directory, "wrangler.toml"), withPricing);
  const other = new Shell(join(directory, "pricing"), env);
  mkdirSync(other.directory);
  const sample = /```js\n(export default \{[^`]*env\.CURFEW\.create[^`]*)```/.exec(readFileSync(join(root, "README.md"), "utf8"))?.[1];
  assert.ok(sample, "the README has a Worker that calls Curfew");
  for (const [name, text] of Object.entries({
    "wrangler.toml": `name = "pricing-worker"\nmain = "worker.mjs"\ncompatibility_date = "2026-11-01"\n${binding}\n`,
    "sample.mjs": sample,
    "worker.mjs": `
      import sample from "./sample.mjs";
      export default {
        fetch(request, env) {
          const { pathname } = new URL(request.url);
          if (pathname === "/quote") return Response.json({ price: 7 });
          if (pathname === "/healthz") return env.CURFEW.fetch(request);
          return sample.fetch(request, env);
        },
      };`,
  })) writeFileSync(join(other.directory, name), text);
  // It has no packages of its own; wrangler needs the Node of the project where that of the machine is older.
  const bin = join(project.directory, "node_modules", ".bin");
  const wrangler = other.spawn(join(bin, "wrangler"), { PATH: [bin, env["PATH"]].join(delimiter) }, "dev", "--port", "0", "--inspector-port", "0");
  try {
    const worker = (await printed(wrangler, /Ready on http:\S+/)).slice("Ready on ".length);
    await project.withDev(async (url) => {
      const health = await until("the binding to be connected", async () => {
        const response = await fetch(`${worker}/healthz`);
        return response.ok && response.json();
      });
      assert.equal((health as any).status, "ok");
      const response = await fetch(worker, { method: "POST", body: '{"name": "Eve"}' });
      const { run_id, ...answer } = (await response.json()) as any;
      assert.deepEqual(answer, { status: "completed", greeting: "Hello, Eve!" });
      assert.match((await project.json("run", run_id, "--url", url)).started_by, /^worker/);

      const action = { id: "ask", kind: "service_call", implementation: { binding: "PRICING", path: "/quote", method: "GET" }, execution: { timeout: "10s" } };
      const quote = { id: "quote", nodes: [{ id: "ask", action_id: "ask", output_mapping: { "output.price": "${result.price}" } }], actions: [action] };
      writeFileSync(join(project.directory, "quote.json"), JSON.stringify(quote));
      await project.json("put", "quote.json", "--url", url);
      const run = await project.json("start", "quote", "--wait", "--url", url);
      assert.deepEqual([run.status, run.output], ["completed", { price: 7 }]);
    });
  } finally {
    await stopped(wrangler);
  }
});

test("every relative link of its pages leads to a file of the package", () => {
  const installed = join(first.directory, "node_modules", "curfew");
  const pages = readdirSync(installed, { recursive: true, encoding: "utf8" }).filter((name) => /\.(md|txt)$/.test(name) && !name.split(sep).includes("node_modules"));
  assert.ok(pages.length > 20, pages.join(" "));
  const lost = pages.flatMap((page) => {
    const targets = [...readFileSync(join(installed, page), "utf8").matchAll(/\]\(([^)\s#]+)[^)]*\)|(?:src|href)="([^"#]+)"/g)].map(([, link, source]) => (link ?? source)!);
    return targets.filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(installed, dirname(page), target))).map((target) => `${page} -> ${target}`);
  });
  assert.deepEqual(lost, []);
});

test("nothing is overwritten", async () => {
  const refused = await first.call("npx", "curfew", "init", "../project").catch((error: any) => error);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /wrangler\.toml.* there already; nothing was written/);
});

test("what it exports can be imported", async () => {
  const program = `
    import { createClient, CurfewError, defineWorkflow } from "curfew/client";
    import { loadEngineSync } from "curfew/engine";
    import { curfewTest } from "curfew/testing";
    import schema from "curfew/schema/workflow.json" with { type: "json" };
    import { readFileSync } from "node:fs";
    import { fileURLToPath } from "node:url";
    const workflow = { id: "pause", nodes: [{ id: "ask", gate: { timeout: "48h", on_timeout: "approve" } }], timeout: "168h" };
    const engine = loadEngineSync(readFileSync(fileURLToPath(import.meta.resolve("curfew/engine.wasm"))));
    const { run } = engine.call({ op: "simulate", workflow });
    console.log(typeof createClient, typeof defineWorkflow, CurfewError.name, schema.$schema);
    console.log(run.status, curfewTest({ workflow }).start().advance("7d").status);`;
  const output = await first.call("node", "--input-type=module", "--eval", program);
  assert.match(output, /^function function CurfewError https:.*\ncompleted completed\n$/);
});

test("the test kit works with Vitest, and its matchers show the timeline", async (t) => {
  const directory = join(first.directory, "vitest");
  mkdirSync(directory);
  for (const [name, text] of Object.entries(VITEST)) writeFileSync(join(directory, name), text);
  const startedAt = performance.now();
  // The last one for Node 20, and the newest.
  const version = /^v2[01]\./.test(await first.call("node", "--version")) ? "4.1.12" : "5.1.0";
  await first.install(`vitest@${version}`);
  const output = await first.call("npx", "vitest", "run", "--dir", directory);
  t.diagnostic(`Vitest ${version}: ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  assert.match(output, /Tests\s+2 passed/);
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2023", "--module", "preserve", "--types", ""];
  await first.call(join(project.directory, "node_modules", ".bin", "tsc"), ...options, join(directory, "page.test.ts"));
});
