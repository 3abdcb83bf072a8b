// The programs on docs/testing.md compile and run as they are written there. The one for Vitest is run by tests/package.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "node:test";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(root, "docs/testing.md"), "utf8");
const programs = [...page.matchAll(/^```ts\n(.*?)^```/gms)].map((found) => found[1]!);

test("the programs on the page compile and pass", async () => {
  assert.ok(programs.length >= 1);
  // Inside of the repository, where `curfew/testing` is found, and outside of node_modules, where Node runs no TypeScript.
  mkdirSync(join(root, "target"), { recursive: true });
  const directory = mkdtempSync(join(root, "target", "testing-docs-"));
  const call = async (args: string[]): Promise<string> => {
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: directory, env, timeout: 60_000 }).catch(({ stdout, stderr }) => assert.fail(`${stdout}${stderr}`));
    return stdout;
  };
  try {
    const files = programs.map((_, index) => `page${index}.test.ts`);
    files.forEach((file, index) => writeFileSync(join(directory, file), programs[index]!));
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["*.ts"], exclude: [] }));
    await call([join(root, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", directory]);
    assert.match(await call(["--disable-warning=ExperimentalWarning", "--test", "--test-reporter=tap", ...files]), /\n# pass [1-9]\d*\n# fail 0\n/);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("the page says how many seeds of its order fail", () => {
  const lines = programs[0]!.split("\n").filter((line) => !line.startsWith("import { test }"));
  const order = lines.slice(0, lines.findIndex((line) => line.startsWith("test(")));
  const counts = `const kit = shop.people({ gate: "approve", after: "1h", choice: "approve" });
    const mild = { crash_after_commit: 5, eviction: 5, lost: 5, duplicated: 5, late_alarm: 5 };
    console.log(JSON.stringify([kit.everySeed(500, { input: { amount: 7 } }), kit.everySeed(200, { input: { amount: 7 }, faults: mild })]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", [...order, counts].join("\n")], { cwd: root, encoding: "utf8", timeout: 60_000 });
  assert.ok(stdout, stderr);
  const [drawn, mild] = JSON.parse(stdout);
  const [completed, failed] = /statuses: { completed: (\d+), failed: (\d+) }/.exec(page)!.slice(1).map(Number) as [number, number];
  assert.equal(completed + failed, 1_000);
  // Another build of the engine draws other numbers from the same seeds, but not another share.
  assert.ok(Math.abs(drawn.statuses.completed / 500 - completed / 1_000) < 0.08, stdout);
  assert.ok(drawn.errors.execution_timeout > drawn.statuses.failed * 0.9, stdout);
  assert.ok(mild.statuses.completed / 200 > 0.96, stdout);
});

test("the page has every matcher and every property of a run", async () => {
  const { matchers, SeenRun } = await import("./index.ts");
  const { TestRun } = await import("./run.ts");
  const names = [SeenRun, TestRun].flatMap((seen) => Object.getOwnPropertyNames(seen.prototype));
  for (const name of [...Object.keys(matchers), ...names.filter((name) => !["constructor", "view"].includes(name))]) {
    assert.match(page, new RegExp(`\`${name}[\`(]`), `docs/testing.md has no \`${name}\``);
  }
});
