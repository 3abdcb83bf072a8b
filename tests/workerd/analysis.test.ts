// Static analysis over the API: with a document that is stored, and of stored and other documents.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
});
after(() => curfew.dispose());

const call = { id: "get", kind: "http_request", implementation: { url: "https://example.com" } };
const calling = (execution?: object) => ({
  id: freshId("w"),
  timeout: "1m",
  on_timeout: "fail",
  nodes: [{ id: "ask", action_id: "get" }],
  actions: [execution ? { ...call, execution } : call],
});

const codes = (problems: { code: string; pointer: string }[]) => problems.map(({ code, pointer }) => `${code} ${pointer}`);
const analyze = (id: string, body: unknown = {}, query = ""): Promise<ApiResponse> => curfew.api("POST", `/v1/workflows/${id}/analyze${query}`, body);

test("warnings come with the stored document, and again with the analysis of each version", async () => {
  const document = calling();
  const stored = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
  assert.equal(stored.status, 201, stored.text);
  assert.deepEqual(codes(stored.json.warnings), ["no_timeout /actions/0"]);
  const better = { ...calling({ timeout: "20s" }), id: document.id };
  assert.deepEqual((await curfew.api("PUT", `/v1/workflows/${document.id}`, better)).json.warnings, []);

  const newest = await analyze(document.id);
  assert.equal(newest.status, 200, newest.text);
  assert.deepEqual([newest.json.errors, newest.json.warnings], [[], []]);
  const first = await analyze(document.id, {}, "?version=1");
  assert.deepEqual(codes(first.json.warnings), ["no_timeout /actions/0"]);
});

test("facts say what a run can take at most", async () => {
  const document = calling({ timeout: "20s", retry_policy: { max_attempts: 1 } });
  const { facts } = (await analyze(document.id, { document })).json;
  assert.equal(facts.ends.surely, true);
  assert.equal(facts.duration_max_ms, 20_500, "its only call and the grace");
  assert.deepEqual([facts.tokens_alive_max, facts.tokens_max], [1, 1]);
  assert.deepEqual(facts.longest_wait, { ms: 20_500, pointer: "/nodes/0" });
  assert.ok(facts.rows_written.happy <= facts.rows_written.worst);
  assert.ok(facts.dollars.happy > 0 && facts.dollars.happy <= facts.dollars.worst);

  const waiting = { timeout: null, nodes: [{ id: "go", wait: { signal: "go" } }] };
  const unsure = (await analyze("any", { document: waiting })).json;
  assert.deepEqual([unsure.facts.ends.surely, unsure.facts.ends.pointer, unsure.facts.duration_max_ms], [false, "/nodes/0", null]);
  assert.match(unsure.facts.ends.reason, /"go" waits for a signal without a timeout/);
});

test("a document with errors has no facts, and nothing is stored", async () => {
  const id = freshId("w");
  const response = await analyze(id, { document: { nodes: [{ id: "a", task_id: "missing" }] } });
  assert.equal(response.status, 200, response.text);
  assert.deepEqual(codes(response.json.errors), ["unknown_reference /nodes/0/task_id"]);
  assert.equal(response.json.facts, null);
  assert.equal((await analyze(id)).status, 404);
});

test("a body that is not understood is refused", async () => {
  const document = calling();
  await curfew.store(document);
  for (const [id, body, query, status, message] of [
    [document.id, { docment: {} }, "", 400, /did you mean "document"\?/],
    [document.id, { document: [] }, "", 422, /a document is an object/],
    [document.id, { document: { ...document, id: "another" } }, "", 422, /the address says/],
    [document.id, { document }, "?version=1", 400, /leave it or "document" out/],
    [document.id, {}, "?version=9", 404, /version 9/],
    [document.id, {}, "?version=x", 400, /whole number/],
    [document.id, {}, "?versoin=1", 400, /did you mean "version"/],
    ["missing", {}, "", 404, /does not exist/],
    [document.id, { document: { description: "x".repeat(600_000), nodes: [{ id: "a" }] } }, "", 422, /the limit is 524288/],
  ] as const) {
    const response = await analyze(id, body, query);
    assert.equal(response.status, status, response.text);
    assert.match(response.text.replaceAll('\\"', '"'), message);
  }
});
