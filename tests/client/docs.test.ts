// The programs on docs/client.md compile as they are written there. tests/workerd/client.test.ts runs the first one.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { root } from "../workerd/harness.ts";

const page = readFileSync(join(root, "docs/client.md"), "utf8");
const blocks = [...page.matchAll(/^```(ts(?: worker)?)\n(.*?)^```/gms)].map((found) => ({ info: found[1]!, text: found[2]! }));

for (const [info, types, least] of [["ts", "node", 4], ["ts worker", "@cloudflare/workers-types", 1]] as const) {
  test(`blocks of ${info} compile`, async () => {
    const programs = blocks.filter((block) => block.info === info);
    assert.ok(programs.length >= least, `only ${programs.length} blocks were found`);
    // Inside of the repository, so that the packages with the types are found.
    const directory = mkdtempSync(join(root, "node_modules", ".client-docs-"));
    try {
      programs.forEach(({ text }, index) => writeFileSync(join(directory, `block${index}.ts`), text));
      const configuration = {
        extends: join(root, "tsconfig.json"),
        compilerOptions: { module: "esnext", moduleResolution: "bundler", types: [types], paths: { "curfew/client": [join(root, "client/index.ts")] } },
        include: ["*.ts"],
        exclude: [],
      };
      writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(configuration));
      const compiled = promisify(execFile)(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "--noEmit", "-p", directory], { timeout: 60_000 });
      await compiled.catch(({ stdout }) => assert.fail(stdout));
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
}
