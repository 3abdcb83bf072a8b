// The programs on docs/testing.md compile and run as they are written there. The one for Vitest is run by tests/package.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
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

test("the page has every matcher and every property of a run", async () => {
  const { matchers, SeenRun } = await import("./index.ts");
  const { TestRun } = await import("./run.ts");
  const names = [SeenRun, TestRun].flatMap((seen) => Object.getOwnPropertyNames(seen.prototype));
  for (const name of [...Object.keys(matchers), ...names.filter((name) => !["constructor", "view"].includes(name))]) {
    assert.match(page, new RegExp(`\`${name}[\`(]`), `docs/testing.md has no \`${name}\``);
  }
});
