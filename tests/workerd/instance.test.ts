// src/worker/wasm_instance.mjs with the real wasm: after a trap the next call runs in a new instance, and objects are constructed
// again from what they stored.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew({ entry: "tests/workerd/workers/trapping.mjs" });
});
after(() => curfew.dispose());

const waiting = workflow({
  timeout: "10m",
  nodes: [{ id: "wait", wait: { signal: "go" } }, { id: "end" }],
  transitions: [{ from_node_id: "wait", to_node_id: "end" }],
});

const sleeping = workflow({
  nodes: [{ id: "sleep", wait: { sleep_ms: 1_500 } }, { id: "end" }],
  transitions: [{ from_node_id: "sleep", to_node_id: "end" }],
});

const replacements = () => curfew.logLines("wasm_replaced").length;

async function trap(): Promise<void> {
  assert.equal((await curfew.api("GET", "/__trap")).text, "trapped");
}

test("runs continue in a new instance, in a request and in an alarm", async () => {
  for (const document of [waiting, sleeping]) await curfew.store(document);
  const run = await curfew.start(waiting.id);
  const sleeper = await curfew.start(sleeping.id);
  assert.equal((await curfew.run(run)).status, "waiting");
  const before = replacements();
  await trap();
  assert.equal((await curfew.run(run)).status, "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${run}/signals/go`, {})).status, 200);
  assert.equal((await curfew.ended(run)).status, "completed");
  assert.equal((await curfew.ended(sleeper)).status, "completed");
  assert.equal(await until("the new instance", () => replacements() - before), 1, "one trap, one new instance");
});

test("an instance is replaced as often as it traps", async () => {
  const before = replacements();
  for (let round = 0; round < 3; round += 1) {
    await trap();
    assert.equal((await curfew.api("GET", "/healthz")).status, 200);
  }
  await until("three new instances", () => replacements() - before === 3);
  assert.equal((await curfew.runToEnd(workflow({ nodes: [{ id: "only" }] }))).status, "completed");
});
