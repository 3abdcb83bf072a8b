// The sweep: once a minute a cron probes overdue runs, and the index gets the updates that it missed. The tests change rows, as
// if messages had been lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, oneTask, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

interface Sweep {
  found: number;
  rung: number;
  gone: number;
  left: number;
  duration_ms: number;
}

interface IndexRow {
  status: string;
  ended_at: number | null;
  due_at: number | null;
  updated_at: number;
  revision: number;
  summary: string;
}

let curfew: Curfew;
/** Its alarms never fire, and its queue refuses the first message about an end. */
let faulty: Curfew;
before(async () => {
  const entry = "tests/workerd/workers/faulty-coordinator.mjs";
  // Refused messages are not retried by a timer here.
  const vars = { DROP_ALARMS: "yes", REFUSE_FIRST: "yes", CURFEW_SWEEP_LATE_MS: "0", CURFEW_INDEX_REPEAT_MS: "600000" };
  [curfew, faulty] = await Promise.all([startCurfew(), startCurfew({ entry, vars })]);
});
after(() => Promise.all([curfew.dispose(), faulty.dispose()]));

/** Runs one pass and returns its log line. */
async function sweep(at: Curfew = curfew): Promise<Sweep> {
  const before = at.logLines("sweep").length;
  const response = await fetch(`${at.url}/cdn-cgi/local/scheduled?cron=*+*+*+*+*`);
  assert.equal(await response.text(), "ok");
  return until("the sweep's log line", () => at.logLines("sweep")[before]);
}

const indexRow = async (id: string, at: Curfew = curfew): Promise<IndexRow | undefined> => (await at.sql("SELECT * FROM runs WHERE id = ?", [id]))[0];

const indexed = (id: string, status: string, at: Curfew = curfew) =>
  until(`run ${id} to be ${status} in the index`, async () => {
    const found = await indexRow(id, at);
    return found?.status === status && found;
  });

/** Waits for a signal that is never sent. */
const waiting = (more: Record<string, unknown> = {}): WorkflowDocument => workflow({ nodes: [{ id: "w", wait: { signal: "never" } }], ...more });

async function startWaiting(more: Record<string, unknown> = {}, at: Curfew = curfew, runId?: string): Promise<string> {
  const document = waiting(more);
  await at.store(document);
  const id = await at.start(document.id, {}, runId ? { run_id: runId } : {});
  await indexed(id, "waiting", at);
  return id;
}

test("a run whose alarm was lost is ended by the sweep", async () => {
  const id = await startWaiting({ timeout: "300ms" }, faulty);
  const rung: Sweep[] = [];
  const ended = await until("the sweep to end the run", async () => {
    rung.push(await sweep(faulty));
    const found = await indexRow(id, faulty);
    return found?.status === "timed_out" && found;
  });
  assert.ok(ended.ended_at, JSON.stringify(ended));
  assert.ok(rung.some((pass) => pass.found === 1 && pass.rung === 1 && pass.left === 0), JSON.stringify(rung));
  assert.equal((await faulty.events(id, "run_timed_out")).length, 1);
  assert.equal((await sweep(faulty)).found, 0);
});

test("the row has the time by which a run must have ended", async () => {
  const limited = await startWaiting({ timeout: "30s" });
  const unlimited = await startWaiting({ timeout: null });
  assert.equal((await indexRow(limited))?.due_at, (await curfew.run(limited)).timeout_at);
  assert.equal((await indexRow(unlimited))?.due_at, null);
  await curfew.api("POST", `/v1/runs/${limited}/pause`, {});
  assert.equal((await indexed(limited, "paused")).due_at, null);
  for (const id of [limited, unlimited]) {
    await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
    assert.equal((await indexed(id, "cancelled")).due_at, null);
  }
});

test("a run that stands at a gate is not overdue, however short its limit", async (t) => {
  const entry = "tests/workerd/workers/faulty-coordinator.mjs";
  const unalarmed = await startCurfew({ entry, vars: { DROP_ALARMS: "yes", CURFEW_SWEEP_LATE_MS: "0" } });
  t.after(() => unalarmed.dispose());
  const start = (gate: object): Promise<string> => unalarmed.storeAndStart([workflow({ nodes: [{ id: "ask", gate }], timeout: "200ms" })], {});
  const [open, bounded] = await Promise.all([start({}), start({ timeout: "600ms" })]);
  const row = await indexed(open, "waiting", unalarmed);
  assert.deepEqual([row.due_at, JSON.parse(row.summary).timeout_at], [null, null]);
  const { json } = await unalarmed.api("GET", "/v1/runs?sort=remaining");
  assert.deepEqual(json.items, []);
  // Its gate has a deadline, and the alarm for it was lost.
  await until("the sweep to end the other run", async () => {
    await sweep(unalarmed);
    return (await indexRow(bounded, unalarmed))?.status === "failed";
  });
  assert.equal((await unalarmed.run(open)).status, "waiting");
});

test("healthy runs are left alone, and probed after a long time without updates", async () => {
  const id = await startWaiting();
  assert.equal((await sweep()).found, 0);
  await curfew.sql("UPDATE runs SET updated_at = 0, due_at = NULL, status = 'running' WHERE id = ?", [id]);
  const pass = await sweep();
  assert.deepEqual([pass.found, pass.rung, pass.left, pass.gone], [1, 1, 0, 0]);
  const found = (await indexRow(id))!;
  assert.equal(found.status, "waiting");
  assert.equal(found.due_at, (await curfew.run(id)).timeout_at);
  assert.ok(Date.now() - found.updated_at < 20_000, String(found.updated_at));
  assert.equal((await sweep()).found, 0);
  await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("a lost message about an end is repaired", async () => {
  const run = await curfew.runToEnd(oneTask([set({ x: 1 })]));
  const told = await indexed(run.id, "completed");
  const stale = JSON.stringify({ ...JSON.parse(told.summary), status: "running", ended_at: null });
  await curfew.sql("UPDATE runs SET status = 'running', ended_at = NULL, revision = revision - 1, updated_at = 0, summary = ? WHERE id = ?", [stale, run.id]);
  assert.equal((await sweep()).rung, 1);
  const repaired = (await indexRow(run.id))!;
  assert.deepEqual([repaired.status, repaired.ended_at], ["completed", run.ended_at]);
  assert.equal(JSON.parse(repaired.summary).status, "completed");
});

test("a lost message about a gate is repaired", async () => {
  const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "Well?", choices: ["yes"] } }] });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const open = async (): Promise<any> => (await curfew.api("GET", "/v1/gates?limit=100")).json.items.find((gate: any) => gate.run_id === id);
  const gate = await until("the gate to be listed", open);
  await curfew.sql("DELETE FROM gates WHERE run_id = ?", [id]);
  await curfew.sql("UPDATE runs SET updated_at = 0 WHERE id = ?", [id]);
  assert.equal(await open(), undefined);
  await sweep();
  assert.deepEqual(await open(), gate);
  await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("a run that is missing from the index is ended by its own alarm", async () => {
  const id = await startWaiting({ timeout: "1s" });
  await curfew.sql("DELETE FROM runs WHERE id = ?", [id]);
  assert.equal((await curfew.run(id)).status, "waiting");
  // No request wakes it: only its alarm can have written this.
  const told = await indexed(id, "timed_out");
  assert.ok(told.ended_at);
  assert.equal((await curfew.run(id)).status, "timed_out");
});

test("a refused message is sent again with the next event", async () => {
  const run = await faulty.runToEnd(oneTask([set({ x: 1 })]));
  assert.equal(run.status, "completed");
  await until("the queue to refuse it", () => faulty.logLines("queue_failed")[0]);
  assert.notEqual((await indexRow(run.id, faulty))?.status, "completed");
  assert.equal((await faulty.api("POST", `/v1/runs/${run.id}/cancel`, {})).status, 409);
  await indexed(run.id, "completed", faulty);
});

test("rows without a run are removed, a hundred per pass, the oldest first", async () => {
  const insert = `INSERT INTO runs (id, workflow_id, version, status, started_at, revision, summary, due_at, updated_at)
    SELECT value, 'gone', 1, 'running', 1, 1, '{}', 1000 + key, ? FROM json_each(?)`;
  const ids = Array.from({ length: 130 }, () => freshId("gone"));
  await curfew.sql(insert, [Date.now(), JSON.stringify(ids)]);
  await curfew.sql("INSERT INTO gates (run_id, id, status, opened_at, view) VALUES (?, 'g1', 'open', 1, '{}')", [ids[0]]);
  const first = await sweep();
  assert.deepEqual([first.found, first.rung, first.gone, first.left], [130, 0, 100, 30]);
  const left = await curfew.sql("SELECT id FROM runs WHERE workflow_id = 'gone' ORDER BY due_at");
  assert.deepEqual(left.map(({ id }) => id), ids.slice(100));
  const second = await sweep();
  assert.deepEqual([second.found, second.gone, second.left], [30, 30, 0]);
  assert.deepEqual(await curfew.sql("SELECT id FROM gates WHERE run_id = ?", [ids[0]]), []);
  assert.ok(curfew.logLines("index_row_without_run").some(({ run_id }) => run_id === ids[0]));
});

test("an object that does not respond is moved to the end of the order", async () => {
  const id = await startWaiting({ timeout: "1h" }, faulty, freshId("broken"));
  await faulty.sql("UPDATE runs SET due_at = 5 WHERE id = ?", [id]);
  const pass = await sweep(faulty);
  assert.deepEqual([pass.found, pass.rung, pass.left], [1, 0, 1]);
  const put = (await indexRow(id, faulty))!;
  assert.ok(put.due_at! > 5 && put.status === "waiting", JSON.stringify(put));
  assert.equal(faulty.logLines("ring_failed")[0].run_id, id);
  await faulty.api("POST", `/v1/runs/${id}/cancel`, {});
  await indexed(id, "cancelled", faulty);
});

/** A run whose gate message was refused; nothing else happens to it. */
async function refusedGate(): Promise<{ id: string; listed: () => Promise<any> }> {
  const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "Well?", choices: ["yes"] } }] });
  await faulty.store(document);
  const before = faulty.logLines("queue_failed").length;
  const id = await faulty.start(document.id);
  await until("the queue to refuse it", () => faulty.logLines("queue_failed")[before]);
  const listed = async (): Promise<any> => (await faulty.api("GET", "/v1/gates?limit=1000")).json.items.find((gate: any) => gate.run_id === id);
  assert.equal(await listed(), undefined);
  return { id, listed };
}

test("a refused gate message is sent again with the next event", async () => {
  const { id, listed } = await refusedGate();
  // An event that changes nothing.
  assert.equal((await faulty.api("POST", `/v1/runs/${id}/gates/none`, { choice: "yes" })).status, 404);
  assert.equal((await until("the gate to be listed", listed)).prompt, "Well?");
  await indexed(id, "waiting", faulty);
  await faulty.api("POST", `/v1/runs/${id}/cancel`, {});
  await until("the gate to be closed", async () => (await listed()) === undefined);
});

test("a refused gate message is retried without another event", async () => {
  const entry = "tests/workerd/workers/faulty-coordinator.mjs";
  const repeating = await startCurfew({ entry, vars: { REFUSE_FIRST: "yes", CURFEW_INDEX_REPEAT_MS: "300" } });
  try {
    const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "Well?", choices: ["yes"] } }] });
    await repeating.store(document);
    const id = await repeating.start(document.id);
    await until("the queue to refuse it", () => repeating.logLines("queue_failed")[0]);
    // The update of the run, which was in the same message, has arrived, too.
    await indexed(id, "waiting", repeating);
    const { items } = (await repeating.api("GET", "/v1/gates")).json;
    assert.deepEqual(items.map((gate: any) => gate.run_id), [id]);
  } finally {
    await repeating.dispose();
  }
});

test("a refused gate message is repaired by the sweep", async () => {
  const { id, listed } = await refusedGate();
  // The update of the run was in the same message.
  await faulty.sql("INSERT INTO runs (id, workflow_id, version, status, started_at, revision, summary, updated_at) VALUES (?, 'w', 1, 'running', 1, 1, '{}', 0)", [id]);
  await sweep(faulty);
  assert.equal((await listed())?.prompt, "Well?");
  await faulty.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("rows of expired runs are removed, fifty per pass", async () => {
  const insert = `INSERT INTO runs (id, workflow_id, version, status, started_at, ended_at, revision, summary, updated_at, tags)
    SELECT value, 'kept', 1, 'completed', 1000 + key, ?1, 1, '{}', ?1, '["old"]' FROM json_each(?2)`;
  const ids = Array.from({ length: 70 }, () => freshId("kept"));
  const month = 30 * 86_400_000;
  await curfew.sql(insert, [Date.now() - month - 2 * 3_600_000, JSON.stringify(ids)]);
  await curfew.sql("INSERT INTO run_tags SELECT 'old', started_at, id FROM runs WHERE workflow_id = 'kept'");
  await curfew.sql("INSERT INTO gates (run_id, id, status, opened_at, view) VALUES (?, 'g1', 'decided', 1, '{}')", [ids[0]]);
  // A run within its retention.
  const [recent] = [freshId("kept")];
  await curfew.sql(insert, [Date.now() - month, JSON.stringify([recent])]);
  // A live run that has ended long ago according to the index: it is probed, not removed.
  const alive = await curfew.runToEnd(oneTask([set({ x: 1 })]));
  await indexed(alive.id, "completed");
  await curfew.sql("UPDATE runs SET ended_at = 5, started_at = 4, updated_at = 6 WHERE id = ?", [alive.id]);
  const first = await sweep();
  const second = await sweep();
  assert.deepEqual([first.found, first.gone + second.gone], [50, 70], JSON.stringify([first, second]));
  const left = await curfew.sql("SELECT id FROM runs WHERE workflow_id = 'kept'");
  assert.deepEqual(left.map(({ id }) => id), [recent]);
  assert.equal((await indexRow(alive.id))?.ended_at, alive.ended_at);
  assert.deepEqual(await curfew.sql("SELECT run_id FROM run_tags WHERE tag = 'old' AND run_id <> ?", [recent]), []);
  assert.deepEqual(await curfew.sql("SELECT id FROM gates WHERE run_id = ?", [ids[0]]), []);
  assert.equal((await sweep()).found, 0);
});

test("a sweep that cannot read the index fails with a log line only", async () => {
  const lame = await startCurfew({ unreplayed: true });
  try {
    await lame.sql("DROP TABLE runs", []);
    const response = await fetch(`${lame.url}/cdn-cgi/local/scheduled`);
    assert.equal(await response.text(), "ok");
    await until("its log line", () => lame.logLines("sweep_failed")[0]);
  } finally {
    await lame.dispose();
  }
});
