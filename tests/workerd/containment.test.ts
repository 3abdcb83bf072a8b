// A commit that fails is the trouble of one run: no other run, no request and no later start of the process notices.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { set, workflow } from "./documents.ts";
import { type Curfew, startCurfew } from "./harness.ts";
import { until } from "./poll.ts";

/** What the database of these tests refuses to store. */
const POISON = "poison-for-the-database";
const AGAIN_MS = 400;

const disk = mkdtempSync(join(tmpdir(), "curfew-containment-"));
let curfew: Curfew;

const boot = () =>
  startCurfew({
    entry: "tests/workerd/workers/failing-store.mjs",
    vars: { FAILING: POISON, CURFEW_ALARM_AGAIN_MS: String(AGAIN_MS) },
    persistTo: disk,
  });

before(async () => {
  curfew = await boot();
});
after(async () => {
  await curfew.dispose();
  rmSync(disk, { recursive: true, force: true });
});

/** Keeps what a signal brings. */
const listening = workflow({
  timeout: "10m",
  nodes: [{ id: "wait", wait: { signal: "go" } }, { id: "keep", task_id: "keep", input_mapping: { word: "${state.wait.word}" } }],
  transitions: [{ from_node_id: "wait", to_node_id: "keep" }],
  tasks: [{ id: "keep", steps: [set({ word: "${input.word}" })] }],
  output_mapping: "${state.keep}",
});

/** Sleeps, then keeps its input: in an alarm. */
const sleeping = workflow({
  timeout: "10m",
  nodes: [{ id: "sleep", wait: { sleep_ms: 200 } }, { id: "keep", task_id: "keep" }],
  transitions: [{ from_node_id: "sleep", to_node_id: "keep" }],
  // Whole only when it is put together: the run's own input must not be refused.
  tasks: [{ id: "keep", steps: [set({ word: "${input.first + input.second}" })] }],
});
const poisonousInput = { first: POISON.slice(0, 9), second: POISON.slice(9) };

const sleeper = workflow({ nodes: [{ id: "nap", wait: { sleep_ms: 300 } }, { id: "end" }], transitions: [{ from_node_id: "nap", to_node_id: "end" }] });

/** Twenty runs and a health check, none of which may notice anything. */
async function othersGoOn(): Promise<void> {
  const began = Date.now();
  assert.equal((await curfew.api("GET", "/healthz")).status, 200);
  const runs = await Promise.all(Array.from({ length: 20 }, () => curfew.start(sleeper.id)));
  const ends = await Promise.all(runs.map((run) => curfew.ended(run, 10_000)));
  assert.deepEqual([...new Set(ends.map((run) => run.status))], ["completed"]);
  assert.equal((await curfew.api("GET", "/healthz")).status, 200);
  assert.ok(Date.now() - began < 10_000, "they are answered soon");
}

const signal = (run: string, word: string) => curfew.api("POST", `/v1/runs/${run}/signals/go`, { word });

test("in a request to an object in memory", async () => {
  await curfew.store(listening);
  await curfew.store(sleeper);
  const run = await curfew.start(listening.id);
  const others = othersGoOn();
  const refused = await signal(run, POISON);
  assert.equal(refused.status, 500, refused.text);
  assert.equal(refused.json.error.code, "internal");
  await others;
  await othersGoOn();
  // Nothing of it was kept, and the run itself goes on with what can be stored.
  assert.equal((await curfew.run(run)).status, "waiting");
  assert.equal((await signal(run, "fine")).status, 200);
  assert.deepEqual((await curfew.ended(run)).output, { word: "fine" });
});

test("in a request that brings the object into memory", async () => {
  const run = await curfew.start(listening.id);
  await curfew.dispose();
  curfew = await boot();
  const others = othersGoOn();
  assert.equal((await signal(run, POISON)).status, 500);
  await others;
  assert.equal((await signal(run, "fine")).status, 200);
  assert.equal((await curfew.ended(run)).status, "completed");
});

test("a start that cannot be stored leaves nothing behind", async () => {
  const id = "start-refused";
  const refused = await curfew.api("POST", `/v1/workflows/${sleeper.id}/runs`, { run_id: id, input: { word: POISON } });
  assert.equal(refused.status, 500, refused.text);
  assert.equal((await curfew.api("GET", `/v1/runs/${id}`)).status, 404);
  await curfew.start(sleeper.id, {}, { run_id: id });
  assert.equal((await curfew.ended(id)).status, "completed");
});

test("a start that broke off before its commit does not keep its id", async () => {
  const id = `halfway-${process.pid}`;
  assert.equal((await curfew.api("GET", `/v1/runs/${id}`)).status, 404);
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`, {})).status, 404);
  await curfew.start(sleeper.id, {}, { run_id: id });
  assert.equal((await curfew.ended(id)).status, "completed");
});

const failures = () => curfew.logs.filter((line) => line.includes('"commit_failed"')).length;

test("in an alarm, and again after every start of the process", async () => {
  await curfew.store(sleeping);
  const run = await curfew.start(sleeping.id, poisonousInput);
  await until("the failed commit", () => failures() > 0);
  await othersGoOn();
  await curfew.dispose();
  curfew = await boot();
  await until("the failed commit after the restart", () => failures() > 0);
  await othersGoOn();
  // Five times in a row, before the restart and after it: then it is given up.
  const end = await curfew.ended(run, 20_000);
  assert.equal(end.status, "failed");
  assert.equal(end.error?.code, "internal_error");
  assert.match(end.error?.message ?? "", /bug of Curfew/);
  await othersGoOn();
});

test("a run whose commits fail can be read and cancelled at once", async () => {
  const run = await curfew.start(sleeping.id, poisonousInput);
  const before = failures();
  await until("a failed commit", () => failures() > before);
  assert.equal((await curfew.run(run)).status, "running");
  const cancelled = await curfew.api("POST", `/v1/runs/${run}/cancel`, { reason: "it is stuck" });
  assert.equal(cancelled.status, 200, cancelled.text);
  assert.equal(cancelled.json.status, "cancelled");
  await othersGoOn();
});

test("a commit of several statements is kept whole or not at all", async () => {
  // More rows than one statement writes; only the last of them is refused.
  const fan = workflow({
    timeout: "10m",
    nodes: [{ id: "wait", wait: { signal: "go" } }, { id: "each", wait: { signal: "never" } }],
    transitions: [{ from_node_id: "wait", to_node_id: "each", foreach: { collection: "state.wait.items", item_var: "item" } }],
  });
  await curfew.store(fan);
  const run = await curfew.start(fan.id);
  const items = Array.from({ length: 60 }, (_, index) => `item ${index}`);
  const send = (body: unknown) => curfew.api("POST", `/v1/runs/${run}/signals/go`, body);
  assert.equal((await send({ items: [...items, POISON] })).status, 500);
  assert.deepEqual((await curfew.tokens(run)).map((token) => token.status), ["suspended"]);
  assert.equal((await send({ items })).status, 200);
  assert.equal((await curfew.tokens(run)).length, 61);
});

test("a gate that was opened just before is listed all the same", async () => {
  const asking = workflow({
    timeout: "10m",
    nodes: [{ id: "begin" }, { id: "ask", gate: { prompt: "Well?" } }, { id: "wait", wait: { signal: "go" } }],
    transitions: [{ from_node_id: "begin", to_node_id: "ask" }, { from_node_id: "begin", to_node_id: "wait" }],
  });
  await curfew.store(asking);
  const run = await curfew.start(asking.id);
  // At once: the index has not been told of the gate yet.
  assert.equal((await signal(run, POISON)).status, 500);
  assert.equal((await curfew.run(run)).status, "waiting");
  await until("the gate to be listed", async () => {
    const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
    return json.items.some((gate: { run_id: string }) => gate.run_id === run);
  });
});
