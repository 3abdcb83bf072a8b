// Runs the workflow in a Curfew of its own, on a free port, with everything it stores in a temporary directory: the Worker, as it is deployed.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { createClient, type Client } from "curfew/client";

const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
let curfew: ChildProcess;
let client: Client;

before(async () => {
  const args = ["dev", "--port", "0", "--json", "--persist", directory];
  curfew = spawn("node_modules/.bin/curfew", args, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(curfew.stdout!), "line");
  client = createClient({ url: JSON.parse(line).url });
});

after(async () => {
  curfew.kill();
  await once(curfew, "close");
  rmSync(directory, { recursive: true, force: true });
});

test("greets at once", async () => {
  const run = await client.start("hello", { input: { name: "Ada" } }, { wait_ms: 10_000 });
  assert.deepEqual([run.status, run.output], ["completed", { greeting: "Hello, Ada!" }]);
});

test("asks a person, who declines", async () => {
  const { id } = await client.start("hello", { input: { name: "Bob", ask: true } });
  for await (const event of client.watch(id, { kinds: ["gate_opened"] })) {
    if (event.kind === "gate_opened" && event.gate_id) await client.decide(id, event.gate_id, { choice: "stay-silent" });
  }
  assert.deepEqual((await client.run(id)).output, { greeting: null });
});
