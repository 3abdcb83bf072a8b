// The installation of Node 22 for an older Node, by an npm that is a script of the test.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, afterEach, test } from "node:test";
import { CommandError } from "./failures.ts";
import { nodeIn } from "./local/node22.ts";

const directory = mkdtempSync(join(tmpdir(), "curfew-node22-"));
const path = process.env["PATH"];
after(() => rmSync(directory, { recursive: true }));
afterEach(() => {
  process.env["PATH"] = path;
});

let count = 0;

/** An empty cache, and what takes the place of npm. */
function withNpm(script: string): { target: string; install(): Promise<string>; notes: string[] } {
  const home = join(directory, String(++count));
  mkdirSync(home);
  writeFileSync(join(home, "npm"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  process.env["PATH"] = [home, path].join(delimiter);
  const target = join(home, "cache", "node");
  const notes: string[] = [];
  return { target, notes, install: () => nodeIn(target, (line) => notes.push(line), new AbortController().signal) };
}

/** A node that runs, some time after npm has begun, as a download takes its time. */
const INSTALLS = `sleep 0.$(( $$ % 5 )); mkdir -p node_modules/node/bin; sleep 0.2; printf '#!/bin/sh\\necho v22\\n' > node_modules/node/bin/node; chmod +x node_modules/node/bin/node`;

test("several installations at the same time do not disturb each other, and one is left", async () => {
  const { target, install, notes } = withNpm(INSTALLS);
  const found = await Promise.all(Array.from({ length: 4 }, install));
  assert.deepEqual(new Set(found), new Set([join(target, "node_modules", "node", "bin", "node")]));
  assert.deepEqual(readdirSync(dirname(target)), ["node"]);
  assert.match(notes[0]!, /^this needs Node 22, and yours is Node [\d.]+: downloading Node 22\S+ into /);
  notes.length = 0;
  await install();
  assert.deepEqual(notes, [], "the second time nothing is downloaded");
});

test("an installation that was interrupted is replaced", async () => {
  const { target, install } = withNpm(INSTALLS);
  mkdirSync(join(target, "node_modules"), { recursive: true });
  await install();
  assert.deepEqual(readdirSync(dirname(target)), ["node"]);
});

test("a registry that does not answer is an error with what npm printed and what to do, and leaves nothing", async () => {
  const { target, install } = withNpm("echo ECONNREFUSED >&2; exit 1");
  await assert.rejects(install(), (error) => {
    assert.ok(error instanceof CommandError);
    assert.match(error.message, /could not be downloaded with npm\nECONNREFUSED$/);
    assert.match(error.next!, /check that npm reaches its registry/);
    return true;
  });
  assert.deepEqual(readdirSync(dirname(target)), []);
});
