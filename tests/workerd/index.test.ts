// The index in D1: long texts are truncated, a refused row does not affect others, rows are removed with their runs, and a reused
// id shows the new run.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { check, freshId, oneTask, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
/** With a short retention. */
let shortRetention: Curfew;
before(async () => {
  [curfew, shortRetention] = await Promise.all([startCurfew(), startCurfew({ vars: { CURFEW_RETENTION_MS: "1500" } })]);
});
after(() => Promise.all([curfew.dispose(), shortRetention.dispose()]));

const rowOf = async (id: string, at: Curfew = curfew): Promise<any> => (await at.sql("SELECT * FROM runs WHERE id = ?", [id]))[0];
const indexed = (id: string, status: string, at: Curfew = curfew) =>
  until(`run ${id} to be ${status} in the index`, async () => {
    const found = await rowOf(id, at);
    return found?.status === status && found;
  });
const gateOf = async (id: string, at: Curfew = curfew): Promise<any> =>
  (await at.api("GET", "/v1/gates?limit=1000")).json.items.find((gate: any) => gate.run_id === id);

/** Sends a message to the index queue, as an object does. */
async function sendToIndex(message: unknown, at: Curfew = curfew): Promise<void> {
  const queue = await at.miniflare.getQueueProducer<string>("INDEX_QUEUE", "curfew");
  await queue.send(JSON.stringify(message), { contentType: "text" });
}

const gateWorkflow = (prompt: string, more: Record<string, unknown> = {}) => workflow({ nodes: [{ id: "ask", gate: { prompt, ...more } }], output_mapping: "${state.ask}" });

test("a gate with a prompt that exceeds a message is listed, truncated, and can be decided", async () => {
  const document = gateWorkflow("${input.text}", { timeout: "20s", on_timeout: "approve" });
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
  assert.deepEqual(curfew.logLines("queue_failed"), []);
});

test("a gate with an object as prompt, a long schema and many choices is listed", async () => {
  const choices = Array.from({ length: 3_000 }, (_, index) => `choice ${index}`);
  const document = gateWorkflow("${input}", { choices, input_schema: { type: "object", description: "y".repeat(100_000) } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { rows: Array.from({ length: 20_000 }, () => "row") });
  const gate = await until("the gate to be listed", () => gateOf(id));
  assert.equal(gate.truncated, true);
  assert.ok(gate.prompt.startsWith('{"rows":["row","row"'), gate.prompt.slice(0, 80));
  assert.deepEqual(gate.choices, choices.slice(0, gate.choices.length));
  assert.ok(gate.choices.length >= 100 && gate.choices.length < choices.length);
  assert.match(gate.input_schema.$comment, /^cut, \d+ bytes in all$/);
  // Choices that are not listed are valid.
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/gates/${gate.id}`, { choice: "choice 2999", input: {} })).status, 200);
});

test("a run with an error that exceeds a message is listed as failed", async () => {
  const document = oneTask([check("false", "${input.text}")]);
  await curfew.store(document);
  const id = await curfew.start(document.id, { text: "x".repeat(300_000) });
  assert.equal((await curfew.ended(id)).status, "failed");
  const listed = await until("the run to be listed", async () => (await curfew.api("GET", `/v1/runs?workflow=${document.id}&status=failed`)).json.items[0]);
  assert.equal(listed.id, id);
  // The error was truncated when it was created, and is the same everywhere.
  assert.match(listed.error.message, /… \[cut, 3\d+ bytes in all\]$/);
  assert.equal(listed.error.message, (await curfew.run(id)).error?.message);
});

test("a refused row affects neither its message nor the others", async () => {
  const summaryMessage = (id: string, more: Record<string, unknown> = {}) => ({
    revision: 1, at: Date.now(),
    summary: { id, workflow_id: "told", version: 1, status: "completed", tags: [], started_at: 5, ended_at: 6, ...more },
  });
  const [first, wrong, last] = [freshId("told"), freshId("wrong"), freshId("told")];
  const queue = await curfew.miniflare.getQueueProducer<string>("INDEX_QUEUE", "curfew");
  const bodies = [[summaryMessage(first), { from: "the future" }], [summaryMessage(wrong, { workflow_id: null })], [summaryMessage(last)]];
  await queue.sendBatch(bodies.map((body) => ({ body: JSON.stringify(body), contentType: "text" as const })));
  for (const id of [first, last]) await indexed(id, "completed");
  assert.equal(await rowOf(wrong), undefined);
  await until("the failure to be logged", () => curfew.logLines("index_write_failed")[0]);
  await until("the unknown values to be logged", () => curfew.logLines("announcement_unreadable")[0]);
});

test("rows written for a run: one, three in indexes, one for each tag; for its batch one of the totals and one for each node", async () => {
  const written = async (document: { id: string }): Promise<number> => {
    const before = curfew.logLines("index_saved").length;
    const run = await curfew.runToEnd(document);
    await indexed(run.id, "completed");
    const saved = await until("what was written", () => curfew.logLines("index_saved").slice(before).find((line) => line.rows_written > 0));
    assert.equal(saved.messages, 1);
    return saved.rows_written;
  };
  assert.equal(await written(oneTask([set({ x: 1 })])), 4 + 2);
  assert.equal(await written(oneTask([set({ x: 1 })], { workflow: { tags: ["a", "b", "c"] } })), 7 + 2);
});

test("a removed run leaves the index, with its gates and tags", async () => {
  const document = { ...gateWorkflow("Well?"), tags: [freshId("tag")] };
  await shortRetention.store(document);
  const id = await shortRetention.start(document.id);
  await until("the gate to be listed", () => gateOf(id, shortRetention));
  await indexed(id, "waiting", shortRetention);
  await shortRetention.api("POST", `/v1/runs/${id}/gates/g1`, { choice: "approve" });
  await indexed(id, "completed", shortRetention);
  assert.equal((await shortRetention.sql("SELECT * FROM run_tags WHERE run_id = ?", [id])).length, 1);
  await until("the row to be deleted", async () => (await rowOf(id, shortRetention)) === undefined);
  assert.equal((await shortRetention.api("GET", `/v1/runs/${id}`)).status, 404);
  assert.deepEqual((await shortRetention.api("GET", `/v1/runs?tag=${document.tags[0]}`)).json, { items: [], next_cursor: null });
  for (const table of ["gates", "run_tags"]) assert.deepEqual(await shortRetention.sql(`SELECT * FROM ${table} WHERE run_id = ?`, [id]), []);
});

test("a reused id shows the new run, whatever remained of the old one", async () => {
  const id = freshId("again");
  const first = oneTask([set({ x: 1 })]);
  await shortRetention.store(first);
  await shortRetention.start(first.id, {}, { run_id: id });
  const old = await indexed(id, "completed", shortRetention);
  await until("the run to be deleted", async () => (await rowOf(id, shortRetention)) === undefined);
  // As if the removal message had been lost after many updates of the run, which had a decided gate.
  const { parent_id: _computed, ...columns } = old;
  const names = Object.keys(columns);
  await shortRetention.sql(`INSERT INTO runs (${names}) VALUES (${names.map(() => "?")})`, Object.values({ ...columns, revision: 99, tags: '["gone"]' }));
  await shortRetention.sql("INSERT INTO run_tags VALUES ('gone', ?, ?)", [old.started_at, id]);
  await shortRetention.sql("INSERT INTO gates (run_id, id, status, opened_at, view) VALUES (?, 'g1', 'decided', ?, '{}')", [id, old.started_at + 1]);

  const second = gateWorkflow("Again?");
  await shortRetention.store(second);
  await shortRetention.start(second.id, {}, { run_id: id });
  const row = await indexed(id, "waiting", shortRetention);
  assert.equal(row.workflow_id, second.id);
  assert.ok(row.started_at > old.ended_at && row.revision < 99, JSON.stringify(row));
  assert.equal((await until("the new gate to be listed", () => gateOf(id, shortRetention))).prompt, "Again?");
  assert.deepEqual(await shortRetention.sql("SELECT * FROM run_tags WHERE run_id = ?", [id]), []);

  // Late messages about the old run change nothing.
  await sendToIndex({ revision: 100, at: Date.now(), summary: { ...JSON.parse(old.summary), status: "failed" } }, shortRetention);
  await sendToIndex({ gate: { run_id: id, id: "g1", status: "decided", opened_at: old.started_at + 1 } }, shortRetention);
  await sendToIndex({ removed: { run_id: id, ended_at: old.ended_at } }, shortRetention);
  const marker = freshId("marker");
  await sendToIndex({ revision: 1, at: 1, summary: { ...JSON.parse(old.summary), id: marker } }, shortRetention);
  await indexed(marker, "completed", shortRetention);
  assert.equal((await rowOf(id, shortRetention)).workflow_id, second.id);
  assert.equal((await gateOf(id, shortRetention))?.prompt, "Again?");
  await shortRetention.api("POST", `/v1/runs/${id}/cancel`, {});
});

test("a removal also removes updates of the same batch", async () => {
  const id = freshId("brief");
  const summary = { id, workflow_id: "told", version: 1, status: "completed", tags: ["t"], started_at: 5, ended_at: 6 };
  await sendToIndex([{ removed: { run_id: id, ended_at: 6 } }, { revision: 2, at: 7, summary }, { gate: { run_id: id, id: "g1", status: "open", opened_at: 5 } }]);
  const marker = freshId("marker");
  await sendToIndex({ revision: 1, at: 1, summary: { ...summary, id: marker, tags: [] } });
  await indexed(marker, "completed");
  assert.equal(await rowOf(id), undefined);
  assert.equal(await gateOf(id), undefined);
});
