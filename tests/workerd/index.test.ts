// The index in D1: what is too long for a message is cut, what cannot be written keeps nothing else out, rows leave with their runs,
// and an id that is used again shows the new run.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { check, freshId, oneTask, set, workflow } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
/** Keeps ended runs for a moment only. */
let brief: Curfew;
before(async () => {
  [curfew, brief] = await Promise.all([startCurfew(), startCurfew({ vars: { CURFEW_RETENTION_MS: "1500" } })]);
});
after(() => Promise.all([curfew.dispose(), brief.dispose()]));

async function query(sql: string, bindings: unknown[] = [], at: Curfew = curfew): Promise<any[]> {
  const database = await at.miniflare.getD1Database("DB", "curfew");
  return (await database.prepare(sql).bind(...bindings).all()).results;
}
const rowOf = async (id: string, at: Curfew = curfew): Promise<any> => (await query("SELECT * FROM runs WHERE id = ?", [id], at))[0];
const indexed = (id: string, status: string, at: Curfew = curfew) =>
  until(`run ${id} to be ${status} in the index`, async () => {
    const found = await rowOf(id, at);
    return found?.status === status && found;
  });
const lines = (at: Curfew, event: string): any[] =>
  at.logs.flatMap((line) => (line.includes(`"event":"${event}"`) ? [JSON.parse(line)] : []));
const gateOf = async (id: string, at: Curfew = curfew): Promise<any> =>
  (await at.api("GET", "/v1/gates?limit=1000")).json.items.find((gate: any) => gate.run_id === id);

/** Sends a message as an object would. */
async function tell(message: unknown, at: Curfew = curfew): Promise<void> {
  const queue = await at.miniflare.getQueueProducer<string>("INDEX_QUEUE", "curfew");
  await queue.send(JSON.stringify(message), { contentType: "text" });
}

const asking = (prompt: string, more: Record<string, unknown> = {}) => workflow({ nodes: [{ id: "ask", gate: { prompt, ...more } }], output_mapping: "${state.ask}" });

test("a gate with a prompt that no message has room for is listed, cut, and can be decided", async () => {
  const document = asking("${input.text}", { timeout: "20s", on_timeout: "approve" });
  await curfew.store(document);
  const text = "Pay 1 000 000? " + "x".repeat(150_000);
  const id = await curfew.start(document.id, { text });
  const gate = await until("the gate to be listed", () => gateOf(id));
  assert.equal(gate.truncated, true);
  assert.ok(gate.prompt.startsWith("Pay 1 000 000? xxx") && gate.prompt.endsWith(`… [cut, ${text.length} bytes in all]`), gate.prompt.slice(-80));
  assert.deepEqual(gate.choices, ["approve", "reject"]);
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/gates/${gate.id}`, { choice: "reject", input: { text }, comment: "too much" })).status, 200);
  assert.equal((await curfew.ended(id)).output.choice, "reject");
  await until("the gate to leave the list", async () => (await gateOf(id)) === undefined);
  assert.deepEqual(lines(curfew, "queue_failed"), []);
});

test("a gate that asks with an object, and has a long schema and many choices, is listed", async () => {
  const choices = Array.from({ length: 3_000 }, (_, index) => `choice ${index}`);
  const document = asking("${input}", { choices, input_schema: { type: "object", description: "y".repeat(100_000) } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { rows: Array.from({ length: 20_000 }, () => "row") });
  const gate = await until("the gate to be listed", () => gateOf(id));
  assert.equal(gate.truncated, true);
  assert.ok(gate.prompt.startsWith('{"rows":["row","row"'), gate.prompt.slice(0, 80));
  assert.deepEqual(gate.choices, choices.slice(0, gate.choices.length));
  assert.ok(gate.choices.length >= 100 && gate.choices.length < choices.length);
  assert.match(gate.input_schema.$comment, /^cut, \d+ bytes in all$/);
  // What is not shown counts all the same.
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/gates/${gate.id}`, { choice: "choice 2999", input: {} })).status, 200);
});

test("a run with an error that no message has room for is listed as failed", async () => {
  const document = oneTask([check("false", "${input.text}")]);
  await curfew.store(document);
  const id = await curfew.start(document.id, { text: "x".repeat(300_000) });
  assert.equal((await curfew.ended(id)).status, "failed");
  const listed = await until("the run to be listed", async () => (await curfew.api("GET", `/v1/runs?workflow=${document.id}&status=failed`)).json.items[0]);
  assert.equal(listed.id, id);
  // It was cut when it was made, and is the same everywhere.
  assert.match(listed.error.message, /… \[cut, 3\d+ bytes in all\]$/);
  assert.equal(listed.error.message, (await curfew.run(id)).error?.message);
});

test("what cannot be written keeps nothing else out, in its message or beside it", async () => {
  const standing = (id: string, more: Record<string, unknown> = {}) => ({
    revision: 1, at: Date.now(),
    summary: { id, workflow_id: "told", version: 1, status: "completed", tags: [], started_at: 5, ended_at: 6, ...more },
  });
  const [first, wrong, last] = [freshId("told"), freshId("wrong"), freshId("told")];
  const queue = await curfew.miniflare.getQueueProducer<string>("INDEX_QUEUE", "curfew");
  const bodies = [[standing(first), { from: "the future" }], [standing(wrong, { workflow_id: null })], [standing(last)]];
  await queue.sendBatch(bodies.map((body) => ({ body: JSON.stringify(body), contentType: "text" as const })));
  for (const id of [first, last]) await indexed(id, "completed");
  assert.equal(await rowOf(wrong), undefined);
  await until("the failure to be logged", () => lines(curfew, "index_write_failed")[0]);
  await until("what is unknown to be logged", () => lines(curfew, "announcement_unreadable")[0]);
});

test("rows written for a run: the row and three indexes, and one for each tag", async () => {
  const written = async (document: { id: string }): Promise<number> => {
    const before = lines(curfew, "index_saved").length;
    const run = await curfew.runToEnd(document);
    await indexed(run.id, "completed");
    const saved = await until("what was written", () => lines(curfew, "index_saved").slice(before).find((line) => line.rows_written > 0));
    assert.equal(saved.messages, 1);
    return saved.rows_written;
  };
  assert.equal(await written(oneTask([set({ x: 1 })])), 4);
  assert.equal(await written(oneTask([set({ x: 1 })], { workflow: { tags: ["a", "b", "c"] } })), 7);
});

test("a run that is kept no longer leaves the index, with its gates and tags", async () => {
  const document = { ...asking("Well?"), tags: [freshId("tag")] };
  await brief.store(document);
  const id = await brief.start(document.id);
  await until("the gate to be listed", () => gateOf(id, brief));
  await indexed(id, "waiting", brief);
  await brief.api("POST", `/v1/runs/${id}/gates/g1`, { choice: "approve" });
  await indexed(id, "completed", brief);
  assert.equal((await query("SELECT * FROM run_tags WHERE run_id = ?", [id], brief)).length, 1);
  await until("the row to leave", async () => (await rowOf(id, brief)) === undefined);
  assert.equal((await brief.api("GET", `/v1/runs/${id}`)).status, 404);
  assert.deepEqual((await brief.api("GET", `/v1/runs?tag=${document.tags[0]}`)).json, { items: [], next_cursor: null });
  for (const table of ["gates", "run_tags"]) assert.deepEqual(await query(`SELECT * FROM ${table} WHERE run_id = ?`, [id], brief), []);
});

test("an id that is used again shows the new run, whatever was left of the old one", async () => {
  const id = freshId("again");
  const first = oneTask([set({ x: 1 })]);
  await brief.store(first);
  await brief.start(first.id, {}, { run_id: id });
  const old = await indexed(id, "completed", brief);
  await until("the run to be deleted", async () => (await rowOf(id, brief)) === undefined);
  // As if the word on its removal had been lost, and the run had been told of often; it had decided a gate, too.
  const { parent_id: _computed, ...columns } = old;
  const names = Object.keys(columns);
  await query(`INSERT INTO runs (${names}) VALUES (${names.map(() => "?")})`, Object.values({ ...columns, revision: 99, tags: '["gone"]' }), brief);
  await query("INSERT INTO run_tags VALUES ('gone', ?, ?)", [old.started_at, id], brief);
  await query("INSERT INTO gates (run_id, id, status, opened_at, view) VALUES (?, 'g1', 'decided', ?, '{}')", [id, old.started_at + 1], brief);

  const second = asking("Again?");
  await brief.store(second);
  await brief.start(second.id, {}, { run_id: id });
  const row = await indexed(id, "waiting", brief);
  assert.equal(row.workflow_id, second.id);
  assert.ok(row.started_at > old.ended_at && row.revision < 99, JSON.stringify(row));
  assert.equal((await until("the new gate to be listed", () => gateOf(id, brief))).prompt, "Again?");
  assert.deepEqual(await query("SELECT * FROM run_tags WHERE run_id = ?", [id], brief), []);

  // Words on the old run that come late change nothing.
  await tell({ revision: 100, at: Date.now(), summary: { ...JSON.parse(old.summary), status: "failed" } }, brief);
  await tell({ gate: { run_id: id, id: "g1", status: "decided", opened_at: old.started_at + 1 } }, brief);
  await tell({ removed: { run_id: id, ended_at: old.ended_at } }, brief);
  const marker = freshId("marker");
  await tell({ revision: 1, at: 1, summary: { ...JSON.parse(old.summary), id: marker } }, brief);
  await indexed(marker, "completed", brief);
  assert.equal((await rowOf(id, brief)).workflow_id, second.id);
  assert.equal((await gateOf(id, brief))?.prompt, "Again?");
  await brief.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("a removal takes what was told in the same batch with it", async () => {
  const id = freshId("brief");
  const summary = { id, workflow_id: "told", version: 1, status: "completed", tags: ["t"], started_at: 5, ended_at: 6 };
  await tell([{ removed: { run_id: id, ended_at: 6 } }, { revision: 2, at: 7, summary }, { gate: { run_id: id, id: "g1", status: "open", opened_at: 5 } }]);
  const marker = freshId("marker");
  await tell({ revision: 1, at: 1, summary: { ...summary, id: marker, tags: [] } });
  await indexed(marker, "completed");
  assert.equal(await rowOf(id), undefined);
  assert.equal(await gateOf(id), undefined);
});
