// The client as a bundle: small, without Node, and without what is not used.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { bundledClient, clientSize } from "../../bench/client_size.ts";

test("bundled for a browser it has less than 6 KiB gzipped", async () => {
  const kib = await clientSize();
  assert.ok(kib > 1 && kib < 6, `${kib} KiB`);
});

test("it imports nothing: no package, no module of Node", async () => {
  assert.doesNotMatch(await bundledClient(), /\bimport\b|\brequire\(|\bprocess\.|\bBuffer\b/);
  const directory = new URL("../../client/", import.meta.url);
  for (const name of readdirSync(directory)) {
    const imported = [...readFileSync(new URL(name, directory), "utf8").matchAll(/^(?:import|export) .* from "([^"]+)";$/gm)].map((found) => found[1]!);
    for (const path of imported) assert.match(path, /^\.\/[a-z]+\.ts$/, name);
  }
});

test("what is not used is not in the bundle", async () => {
  const onlyDefinition = await bundledClient('import { choice, defineWorkflow } from "./index.ts"; export default defineWorkflow({ id: choice("a", "b"), nodes: [{ id: "a" }] });');
  assert.ok(onlyDefinition.length < 400, onlyDefinition);
  const onlyClient = await bundledClient('import { createClient } from "./index.ts"; export default createClient();');
  assert.doesNotMatch(onlyClient, /\.choice ==/);
});
