// A failing commit affects one run only: no other run, no request and no later start of the process.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { set, workflow } from "./document-builders.ts";
import { type Curfew, startCurfew } from "./harness.ts";
import { until } from "./poll.ts";

/** The text that the database of these tests refuses to store. */
const REFUSED_TEXT = "poison-for-the-database";
const ALARM_RETRY_MS = 400;

const directory = mkdtempSync(join(tmpdir(), "curfew-failing-commits-"));
let curfew: Curfew;

const start = () =>
  startCurfew({
    // No history has the commits that failed.
    unreplayed: true,
    entry: "tests/workerd/workers/failing-storage.mjs",
    vars: { FAILING: REFUSED_TEXT, CURFEW_ALARM_AGAIN_MS: String(ALARM_RETRY_MS) },
    persistTo: directory,
  });

before(async () => {
  curfew = await start();
});
after(async () => {
  await curfew.dispose();
  rmSync(directory, { recursive: true, force: true });
});

/** Stores the payload of a signal. */
const storesSignal = workflow({
  timeout: "10m",
  nodes: [{ id: "wait", wait: { signal: "go" } }, { id: "keep", task_id: "keep", input_mapping: { word: "${state.wait.word}" } }],
  transitions: [{ from_node_id: "wait", to_node_id: "keep" }],
  tasks: [{ id: "keep", steps: [set({ word: "${input.word}" })] }],
  output_mapping: "${state.keep}",
});

/** Sleeps, then stores its input: the commit fails in an alarm. */
const storesAfterSleep = workflow({
  timeout: "10m",
  nodes: [{ id: "sleep", wait: { sleep_ms: 200 } }, { id: "keep", task_id: "keep" }],
  transitions: [{ from_node_id: "sleep", to_node_id: "keep" }],
  // Complete only after the concatenation: the run's own input must not be refused.
  tasks: [{ id: "keep", steps: [set({ word: "${input.first + input.second}" })] }],
});
const refusedInput = { first: REFUSED_TEXT.slice(0, 9), second: REFUSED_TEXT.slice(9) };

const otherWorkflow = workflow({ nodes: [{ id: "nap", wait: { sleep_ms: 300 } }, { id: "end" }], transitions: [{ from_node_id: "nap", to_node_id: "end" }] });

/** Twenty runs and a health check that must not be affected. */
async function assertOthersUnaffected(): Promise<void> {
  const began = Date.now();
  assert.equal((await curfew.api("GET", "/healthz")).status, 200);
  const runs = await Promise.all(Array.from({ length: 20 }, () => curfew.start(otherWorkflow.id)));
  const ends = await Promise.all(runs.map((run) => curfew.ended(run, 10_000)));
  assert.deepEqual([...new Set(ends.map((run) => run.status))], ["completed"]);
  assert.equal((await curfew.api("GET", "/healthz")).status, 200);
  assert.ok(Date.now() - began < 10_000, "other requests get a response soon");
}

const signal = (run: string, word: string) => curfew.api("POST", `/v1/runs/${run}/signals/go`, { word });

test("in a request to an object in memory", async () => {
  await curfew.store(storesSignal);
  await curfew.store(otherWorkflow);
  const run = await curfew.start(storesSignal.id);
  const others = assertOthersUnaffected();
  const refused = await signal(run, REFUSED_TEXT);
  assert.equal(refused.status, 500, refused.text);
  assert.equal(refused.json.error.code, "internal");
  await others;
  await assertOthersUnaffected();
  // Nothing was stored, and the run continues with values that can be stored.
  assert.equal((await curfew.run(run)).status, "waiting");
  assert.equal((await signal(run, "fine")).status, 200);
  assert.deepEqual((await curfew.ended(run)).output, { word: "fine" });
});

test("in a request that loads the object", async () => {
  const run = await curfew.start(storesSignal.id);
  await curfew.dispose();
  curfew = await start();
  const others = assertOthersUnaffected();
  assert.equal((await signal(run, REFUSED_TEXT)).status, 500);
  await others;
  assert.equal((await signal(run, "fine")).status, 200);
  assert.equal((await curfew.ended(run)).status, "completed");
});

test("a start that cannot be stored leaves no rows", async () => {
  const id = "start-refused";
  const refused = await curfew.api("POST", `/v1/workflows/${otherWorkflow.id}/runs`, { run_id: id, input: { word: REFUSED_TEXT } });
  assert.equal(refused.status, 500, refused.text);
  assert.equal((await curfew.api("GET", `/v1/runs/${id}`)).status, 404);
  await curfew.start(otherWorkflow.id, {}, { run_id: id });
  assert.equal((await curfew.ended(id)).status, "completed");
});

test("a start that was interrupted before its commit does not block its id", async () => {
  const id = `halfway-${process.pid}`;
  assert.equal((await curfew.api("GET", `/v1/runs/${id}`)).status, 404);
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`, {})).status, 404);
  await curfew.start(otherWorkflow.id, {}, { run_id: id });
  assert.equal((await curfew.ended(id)).status, "completed");
});

const failures = () => curfew.logs.filter((line) => line.includes('"commit_failed"')).length;

test("in an alarm, and again after every restart", async () => {
  await curfew.store(storesAfterSleep);
  const run = await curfew.start(storesAfterSleep.id, refusedInput);
  await until("the failed commit", () => failures() > 0);
  await assertOthersUnaffected();
  await curfew.dispose();
  curfew = await start();
  await until("the failed commit after the restart", () => failures() > 0);
  await assertOthersUnaffected();
  // After five failures in a row, before and after the restart, the run is failed.
  const end = await curfew.ended(run, 20_000);
  assert.equal(end.status, "failed");
  assert.equal(end.error?.code, "internal_error");
  assert.match(end.error?.message ?? "", /bug of Curfew/);
  await assertOthersUnaffected();
});

test("a run whose commits fail can be read and cancelled at once", async () => {
  const run = await curfew.start(storesAfterSleep.id, refusedInput);
  const before = failures();
  await until("a failed commit", () => failures() > before);
  assert.equal((await curfew.run(run)).status, "running");
  const cancelled = await curfew.api("POST", `/v1/runs/${run}/cancel`, { reason: "it is stuck" });
  assert.equal(cancelled.status, 200, cancelled.text);
  assert.equal(cancelled.json.status, "cancelled");
  await assertOthersUnaffected();
});

test("a commit of several statements is atomic", async () => {
  // More rows than one statement writes; only the last row is refused.
  const fan = workflow({
    timeout: "10m",
    nodes: [{ id: "wait", wait: { signal: "go" } }, { id: "each", wait: { signal: "never" } }],
    transitions: [{ from_node_id: "wait", to_node_id: "each", foreach: { collection: "state.wait.items", item_var: "item" } }],
  });
  await curfew.store(fan);
  const run = await curfew.start(fan.id);
  const items = Array.from({ length: 60 }, (_, index) => `item ${index}`);
  const send = (body: unknown) => curfew.api("POST", `/v1/runs/${run}/signals/go`, body);
  assert.equal((await send({ items: [...items, REFUSED_TEXT] })).status, 500);
  assert.deepEqual((await curfew.tokens(run)).map((token) => token.status), ["suspended"]);
  assert.equal((await send({ items })).status, 200);
  assert.equal((await curfew.tokens(run)).length, 61);
});

test("a gate that was opened just before the failure is listed", async () => {
  const asking = workflow({
    timeout: "10m",
    nodes: [{ id: "begin" }, { id: "ask", gate: { prompt: "Well?" } }, { id: "wait", wait: { signal: "go" } }],
    transitions: [{ from_node_id: "begin", to_node_id: "ask" }, { from_node_id: "begin", to_node_id: "wait" }],
  });
  await curfew.store(asking);
  const run = await curfew.start(asking.id);
  // Immediately: the gate is not in the index yet.
  assert.equal((await signal(run, REFUSED_TEXT)).status, 500);
  assert.equal((await curfew.run(run)).status, "waiting");
  await until("the gate to be listed", async () => {
    const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
    return json.items.some((gate: { run_id: string }) => gate.run_id === run);
  });
});
