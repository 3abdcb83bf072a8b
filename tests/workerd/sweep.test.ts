// The net under the alarms: once a minute a cron rings the runs whose end is overdue, and the index learns from the objects what
// it missed. Rows are altered by hand, as if messages had been lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, oneTask, set, workflow, type WorkflowDocument } from "./documents.ts";
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
/** Its alarms never ring, and its queue refuses the first word on an end. */
let worse: Curfew;
before(async () => {
  const entry = "tests/workerd/workers/unreliable-coordinator.mjs";
  // What is refused is not repeated by itself here.
  const vars = { DEAF: "yes", REFUSING: "yes", CURFEW_SWEEP_LATE_MS: "0", CURFEW_INDEX_REPEAT_MS: "600000" };
  [curfew, worse] = await Promise.all([startCurfew(), startCurfew({ entry, vars })]);
});
after(() => Promise.all([curfew.dispose(), worse.dispose()]));

const lines = (at: Curfew, event: string): any[] =>
  at.logs.flatMap((line) => (line.includes(`"event":"${event}"`) ? [JSON.parse(line)] : []));

/** One pass of the cron, and what it said of itself. */
async function sweep(at: Curfew = curfew): Promise<Sweep> {
  const before = lines(at, "sweep").length;
  const answer = await fetch(`${at.url}/cdn-cgi/local/scheduled?cron=*+*+*+*+*`);
  assert.equal(await answer.text(), "ok");
  return until("the sweep's word", () => lines(at, "sweep")[before]);
}

async function query(sql: string, bindings: unknown[] = [], at: Curfew = curfew): Promise<any[]> {
  const database = await at.miniflare.getD1Database("DB", "curfew");
  return (await database.prepare(sql).bind(...bindings).all()).results;
}

const row = async (id: string, at: Curfew = curfew): Promise<IndexRow | undefined> => (await query("SELECT * FROM runs WHERE id = ?", [id], at))[0];

const indexed = (id: string, status: string, at: Curfew = curfew) =>
  until(`run ${id} to be ${status} in the index`, async () => {
    const found = await row(id, at);
    return found?.status === status && found;
  });

/** Waits for a signal that nobody sends. */
const waiting = (more: Record<string, unknown> = {}): WorkflowDocument => workflow({ nodes: [{ id: "w", wait: { signal: "never" } }], ...more });

async function startWaiting(more: Record<string, unknown> = {}, at: Curfew = curfew, runId?: string): Promise<string> {
  const document = waiting(more);
  await at.store(document);
  const id = await at.start(document.id, {}, runId ? { run_id: runId } : {});
  await indexed(id, "waiting", at);
  return id;
}

test("a run whose alarm was lost is ended by the sweep", async () => {
  const id = await startWaiting({ timeout: "300ms" }, worse);
  const rung: Sweep[] = [];
  const ended = await until("the sweep to end the run", async () => {
    rung.push(await sweep(worse));
    const found = await row(id, worse);
    return found?.status === "timed_out" && found;
  });
  assert.ok(ended.ended_at, JSON.stringify(ended));
  assert.ok(rung.some((pass) => pass.found === 1 && pass.rung === 1 && pass.left === 0), JSON.stringify(rung));
  assert.equal((await worse.events(id, "run_timed_out")).length, 1);
  assert.equal((await sweep(worse)).found, 0);
});

test("the row says by when a run must have ended", async () => {
  const limited = await startWaiting({ timeout: "30s" });
  const unlimited = await startWaiting({ timeout: null });
  assert.equal((await row(limited))?.due_at, (await curfew.run(limited)).timeout_at);
  assert.equal((await row(unlimited))?.due_at, null);
  await curfew.api("POST", `/v1/runs/${limited}/pause`, {});
  assert.equal((await indexed(limited, "paused")).due_at, null);
  for (const id of [limited, unlimited]) {
    await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
    assert.equal((await indexed(id, "cancelled")).due_at, null);
  }
});

test("runs that are well are left alone, and looked at when nothing was heard of them for long", async () => {
  const id = await startWaiting();
  assert.equal((await sweep()).found, 0);
  await query("UPDATE runs SET updated_at = 0, due_at = NULL, status = 'running' WHERE id = ?", [id]);
  const pass = await sweep();
  assert.deepEqual([pass.found, pass.rung, pass.left, pass.gone], [1, 1, 0, 0]);
  const found = (await row(id))!;
  assert.equal(found.status, "waiting");
  assert.equal(found.due_at, (await curfew.run(id)).timeout_at);
  assert.ok(Date.now() - found.updated_at < 20_000, String(found.updated_at));
  assert.equal((await sweep()).found, 0);
  await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("an end that the index never heard of is made good", async () => {
  const run = await curfew.runToEnd(oneTask([set({ x: 1 })]));
  const told = await indexed(run.id, "completed");
  const stale = JSON.stringify({ ...JSON.parse(told.summary), status: "running", ended_at: null });
  await query("UPDATE runs SET status = 'running', ended_at = NULL, revision = revision - 1, updated_at = 0, summary = ? WHERE id = ?", [stale, run.id]);
  assert.equal((await sweep()).rung, 1);
  const repaired = (await row(run.id))!;
  assert.deepEqual([repaired.status, repaired.ended_at], ["completed", run.ended_at]);
  assert.equal(JSON.parse(repaired.summary).status, "completed");
});

test("a gate that the index never heard of is made good", async () => {
  const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "Well?", choices: ["yes"] } }] });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const open = async (): Promise<any> => (await curfew.api("GET", "/v1/gates?limit=100")).json.items.find((gate: any) => gate.run_id === id);
  const gate = await until("the gate to be listed", open);
  await query("DELETE FROM gates WHERE run_id = ?", [id]);
  await query("UPDATE runs SET updated_at = 0 WHERE id = ?", [id]);
  assert.equal(await open(), undefined);
  await sweep();
  assert.deepEqual(await open(), gate);
  await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("a run that is missing from the index is ended by its own alarm", async () => {
  const id = await startWaiting({ timeout: "1s" });
  await query("DELETE FROM runs WHERE id = ?", [id]);
  assert.equal((await curfew.run(id)).status, "waiting");
  // Nobody asks for it: only its alarm can have written this.
  const told = await indexed(id, "timed_out");
  assert.ok(told.ended_at);
  assert.equal((await curfew.run(id)).status, "timed_out");
});

test("what the queue refused is said again with the next event", async () => {
  const run = await worse.runToEnd(oneTask([set({ x: 1 })]));
  assert.equal(run.status, "completed");
  await until("the queue to refuse it", () => lines(worse, "queue_failed")[0]);
  assert.notEqual((await row(run.id, worse))?.status, "completed");
  assert.equal((await worse.api("POST", `/v1/runs/${run.id}/cancel`, {})).status, 409);
  await indexed(run.id, "completed", worse);
});

test("rows without a run are removed, a hundred in a pass, the oldest first", async () => {
  const insert = `INSERT INTO runs (id, workflow_id, version, status, started_at, revision, summary, due_at, updated_at)
    SELECT value, 'gone', 1, 'running', 1, 1, '{}', 1000 + key, ? FROM json_each(?)`;
  const ids = Array.from({ length: 130 }, () => freshId("gone"));
  await query(insert, [Date.now(), JSON.stringify(ids)]);
  await query("INSERT INTO gates (run_id, id, status, opened_at, view) VALUES (?, 'g1', 'open', 1, '{}')", [ids[0]]);
  const first = await sweep();
  assert.deepEqual([first.found, first.rung, first.gone, first.left], [130, 0, 100, 30]);
  const left = await query("SELECT id FROM runs WHERE workflow_id = 'gone' ORDER BY due_at");
  assert.deepEqual(left.map(({ id }) => id), ids.slice(100));
  const second = await sweep();
  assert.deepEqual([second.found, second.gone, second.left], [30, 30, 0]);
  assert.deepEqual(await query("SELECT id FROM gates WHERE run_id = ?", [ids[0]]), []);
  assert.ok(lines(curfew, "index_row_without_run").some(({ run_id }) => run_id === ids[0]));
});

test("an object that cannot be rung goes to the end of the line", async () => {
  const id = await startWaiting({ timeout: "1h" }, worse, freshId("broken"));
  await query("UPDATE runs SET due_at = 5 WHERE id = ?", [id], worse);
  const pass = await sweep(worse);
  assert.deepEqual([pass.found, pass.rung, pass.left], [1, 0, 1]);
  const put = (await row(id, worse))!;
  assert.ok(put.due_at! > 5 && put.status === "waiting", JSON.stringify(put));
  assert.equal(lines(worse, "ring_failed")[0].run_id, id);
  await worse.api("POST", `/v1/runs/${id}/cancel`, {});
  await indexed(id, "cancelled", worse);
});

/** A gate that the queue refused; nothing else happens to its run. */
async function refusedGate(): Promise<{ id: string; listed: () => Promise<any> }> {
  const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "Well?", choices: ["yes"] } }] });
  await worse.store(document);
  const before = lines(worse, "queue_failed").length;
  const id = await worse.start(document.id);
  await until("the queue to refuse it", () => lines(worse, "queue_failed")[before]);
  const listed = async (): Promise<any> => (await worse.api("GET", "/v1/gates?limit=1000")).json.items.find((gate: any) => gate.run_id === id);
  assert.equal(await listed(), undefined);
  return { id, listed };
}

test("a gate that the queue refused is told of again with the next event", async () => {
  const { id, listed } = await refusedGate();
  // An event that changes nothing.
  assert.equal((await worse.api("POST", `/v1/runs/${id}/gates/none`, { choice: "yes" })).status, 404);
  assert.equal((await until("the gate to be listed", listed)).prompt, "Well?");
  await indexed(id, "waiting", worse);
  await worse.api("POST", `/v1/runs/${id}/cancel`, {});
  await until("the gate to be closed", async () => (await listed()) === undefined);
});

test("a gate that the queue refused is told of again after a while, though nothing else happens", async () => {
  const entry = "tests/workerd/workers/unreliable-coordinator.mjs";
  const repeating = await startCurfew({ entry, vars: { REFUSING: "yes", CURFEW_INDEX_REPEAT_MS: "300" } });
  try {
    const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "Well?", choices: ["yes"] } }] });
    await repeating.store(document);
    const id = await repeating.start(document.id);
    await until("the queue to refuse it", () => lines(repeating, "queue_failed")[0]);
    // Its run, which was in the same message, is known now, too.
    await indexed(id, "waiting", repeating);
    const { items } = (await repeating.api("GET", "/v1/gates")).json;
    assert.deepEqual(items.map((gate: any) => gate.run_id), [id]);
  } finally {
    await repeating.dispose();
  }
});

test("a gate that the queue refused is found by the sweep", async () => {
  const { id, listed } = await refusedGate();
  // The word on the run was in the same message.
  await query("INSERT INTO runs (id, workflow_id, version, status, started_at, revision, summary, updated_at) VALUES (?, 'w', 1, 'running', 1, 1, '{}', 0)", [id], worse);
  await sweep(worse);
  assert.equal((await listed())?.prompt, "Well?");
  await worse.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("rows of runs that ended longer ago than they are kept are removed, fifty in a pass", async () => {
  const insert = `INSERT INTO runs (id, workflow_id, version, status, started_at, ended_at, revision, summary, updated_at, tags)
    SELECT value, 'kept', 1, 'completed', 1000 + key, ?1, 1, '{}', ?1, '["old"]' FROM json_each(?2)`;
  const ids = Array.from({ length: 70 }, () => freshId("kept"));
  const month = 30 * 86_400_000;
  await query(insert, [Date.now() - month - 2 * 3_600_000, JSON.stringify(ids)]);
  await query("INSERT INTO run_tags SELECT 'old', started_at, id FROM runs WHERE workflow_id = 'kept'");
  await query("INSERT INTO gates (run_id, id, status, opened_at, view) VALUES (?, 'g1', 'decided', 1, '{}')", [ids[0]]);
  // One that is within its time.
  const [recent] = [freshId("kept")];
  await query(insert, [Date.now() - month, JSON.stringify([recent])]);
  // And one that lives, of which the index believes that it ended long ago: it is asked, not removed.
  const alive = await curfew.runToEnd(oneTask([set({ x: 1 })]));
  await indexed(alive.id, "completed");
  await query("UPDATE runs SET ended_at = 5, started_at = 4, updated_at = 6 WHERE id = ?", [alive.id]);
  const first = await sweep();
  const second = await sweep();
  assert.deepEqual([first.found, first.gone + second.gone], [50, 70], JSON.stringify([first, second]));
  const left = await query("SELECT id FROM runs WHERE workflow_id = 'kept'");
  assert.deepEqual(left.map(({ id }) => id), [recent]);
  assert.equal((await row(alive.id))?.ended_at, alive.ended_at);
  assert.deepEqual(await query("SELECT run_id FROM run_tags WHERE tag = 'old' AND run_id <> ?", [recent]), []);
  assert.deepEqual(await query("SELECT id FROM gates WHERE run_id = ?", [ids[0]]), []);
  assert.equal((await sweep()).found, 0);
});

test("a sweep that cannot read the index fails without a noise but its own", async () => {
  const lame = await startCurfew();
  try {
    await query("DROP TABLE runs", [], lame);
    const answer = await fetch(`${lame.url}/cdn-cgi/local/scheduled`);
    assert.equal(await answer.text(), "ok");
    await until("its word", () => lines(lame, "sweep_failed")[0]);
  } finally {
    await lame.dispose();
  }
});
