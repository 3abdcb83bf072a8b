// Gates: what is shown, which decisions are accepted, concurrent decisions, and timeouts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, freshId, markAction, markNode, workflow } from "./document-builders.ts";
import { ADMIN, OPERATE, READ, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { GateView } from "./api-types.ts";

let curfew: Curfew;
let guarded: Curfew;
let peer: Peer;
before(async () => {
  [curfew, guarded, peer] = await Promise.all([startCurfew(), startCurfew({ vars: roleVars }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), guarded.dispose(), peer.close()]));

/** review -> publish or discard, by the choice; late if the gate times out. */
const review = (gate: Record<string, unknown> = {}) =>
  workflow({
    nodes: [{ id: "review", gate }, markNode("publish"), markNode("discard")],
    actions: [markAction("publish"), markAction("discard")],
    transitions: [
      { from_node_id: "review", to_node_id: "publish", condition: "state.review.choice == 'approve'" },
      { from_node_id: "review", to_node_id: "discard", condition: "state.review.choice != 'approve'" },
    ],
    output_mapping: "${state.review}",
  });

async function waiting(document: ReturnType<typeof review>, input: unknown = {}): Promise<string> {
  await curfew.store(document);
  const id = await curfew.start(document.id, input);
  await until("the run to wait", async () => (await curfew.run(id)).status === "waiting");
  return id;
}

/** The open gates of one run, from the list of all gates. */
async function listed(runId: string, token?: string, at: Curfew = curfew): Promise<GateView[]> {
  const response = await at.api("GET", "/v1/gates?limit=1000", undefined, token);
  assert.equal(response.status, 200, response.text);
  return response.json.items.filter((gate: GateView) => gate.run_id === runId);
}
const openGate = (runId: string) => until(`the gate of ${runId} in the list`, async () => (await listed(runId))[0]);
const goneGate = (runId: string) => until(`the gate of ${runId} to leave the list`, async () => (await listed(runId)).length === 0);

const decide = (runId: string, gateId: string, decision: unknown) =>
  curfew.api("POST", `/v1/runs/${runId}/gates/${gateId}`, decision);

const visited = async (runId: string) => (await curfew.tokens(runId)).map((token) => token.node_id);

test("a gate shows its prompt, accepts a decision with a comment, and the run takes the chosen route", async () => {
  const schema = { type: "object" };
  const id = await waiting(review({ prompt: "Publish ${input.title}?", input_schema: schema, timeout: "20s" }), { title: "Dune" });
  const gate = await openGate(id);
  const { opened_at, timeout_at, ...rest } = gate;
  assert.deepEqual(rest, {
    id: "g1",
    run_id: id,
    node_id: "review",
    token_id: "t1",
    kind: "node",
    prompt: "Publish Dune?",
    choices: ["approve", "reject"],
    input_schema: schema,
    reminded_at: null,
    status: "open",
    decision: null,
  });
  assert.equal(timeout_at, opened_at + 20_000);
  const [token] = await curfew.tokens(id);
  assert.equal(token?.status, "awaiting_human");
  const [deadline] = (await curfew.run(id)).deadlines.filter(({ kind }) => kind === "gate");
  assert.deepEqual(deadline, { kind: "gate", due_at: timeout_at, token_id: "t1", node_id: "review", gate_id: "g1" });

  const decision = { choice: "approve", input: { shelf: 3 }, comment: "a classic", by: "ada" };
  const response = await decide(id, gate.id, decision);
  assert.equal(response.status, 200, response.text);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, decision);
  assert.deepEqual(await visited(id), ["review", "publish"]);
  const [decided] = await curfew.tokens(id);
  assert.deepEqual([decided?.status, decided?.output], ["completed", decision]);
  await goneGate(id);
});

test("each choice of the gate completes it; transitions route on it", async () => {
  const id = await waiting(review({ choices: ["approve", "rework", "burn"] }));
  const gate = await openGate(id);
  assert.deepEqual(gate.choices, ["approve", "rework", "burn"]);
  assert.equal(gate.timeout_at, null);
  assert.equal((await decide(id, gate.id, { choice: "burn" })).status, 200);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output.choice, "burn");
  assert.deepEqual(await visited(id), ["review", "discard"]);
});

test("an invalid decision is refused with a pointer, and the gate stays open", async () => {
  const input_schema = { type: "object", required: ["amount"], properties: { amount: { type: "number", maximum: 100 } } };
  const id = await waiting(review({ input_schema }));
  const cases: [decision: unknown, pointer: string][] = [
    [{ choice: "maybe", input: { amount: 1 } }, "/choice"],
    [{}, "/choice"],
    [{ choice: 7 }, "/choice"],
    [{ choice: "approve", input: { amount: "much" } }, "/input/amount"],
    [{ choice: "approve", input: { amount: 101 } }, "/input/amount"],
    [{ choice: "approve", input: { amount: 1 }, by: 5 }, "/by"],
    [{ choice: "approve", input: { amount: 1 }, coment: "typo" }, "/coment"],
  ];
  for (const [decision, pointer] of cases) {
    const response = await decide(id, "g1", decision);
    // An unknown field is a 400.
    assert.equal(response.status, pointer === "/coment" ? 400 : 422, `${JSON.stringify(decision)}: ${response.text}`);
    assert.equal(response.json.error.pointer, pointer, response.text);
  }
  const missing = await decide(id, "g1", { choice: "approve", input: {} });
  assert.equal(missing.status, 422, missing.text);
  assert.match(missing.json.error.pointer, /^\/input/);
  assert.equal((await curfew.run(id)).status, "waiting");
  assert.equal((await decide(id, "g1", { choice: "approve", input: { amount: 100 } })).status, 200);
  assertCompleted(await curfew.ended(id));
});

test("of two concurrent decisions the first counts, and the second gets the decision in its error", async () => {
  const id = await waiting(review());
  const answers = await Promise.all([
    decide(id, "g1", { choice: "approve", by: "ada" }),
    decide(id, "g1", { choice: "reject", by: "bob" }),
  ]);
  assert.deepEqual(answers.map((response) => response.status).sort(), [200, 409], answers.map((response) => response.text).join());
  const refused = answers.find((response) => response.status === 409)?.json.error;
  assert.equal(refused.code, "gate_closed");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(refused.details.status, "decided");
  assert.equal(refused.details.decision.choice, run.output.choice);
  assert.equal(refused.details.decision.by, run.output.by);
  assert.ok(refused.details.decision.at >= run.started_at);
  assert.equal((await visited(id)).length, 2, "one decision, one continuation");
});

test("the list of one run contains its open gates, in pages", async () => {
  const asking = workflow({
    nodes: [{ id: "begin" }, ...["a", "b", "c"].map((id) => ({ id, gate: { prompt: `${id}?` } }))],
    transitions: ["a", "b", "c"].map((id) => ({ from_node_id: "begin", to_node_id: id })),
  });
  await curfew.store(asking);
  const [id, other] = [await curfew.start(asking.id), await curfew.start(asking.id)];
  const of = async (run: string) => (await curfew.api("GET", `/v1/gates?run=${run}`)).json.items.map((gate: GateView) => [gate.run_id, gate.node_id]);
  for (const run of [id, other]) await until("three gates", async () => (await of(run)).length === 3);
  assert.deepEqual((await of(id)).sort(), ["a", "b", "c"].map((node) => [id, node]));
  assert.equal((await decide(id, "g2", { choice: "approve" })).status, 200);
  await until("the decided gate to leave the list", async () => (await of(id)).length === 2);
  const page = (cursor: string) => curfew.api("GET", `/v1/gates?run=${id}&limit=1&cursor=${encodeURIComponent(cursor)}`);
  const first = (await page("")).json;
  const second = (await page(first.next_cursor)).json;
  assert.deepEqual([...first.items, ...second.items].map((gate: GateView) => gate.id), ["g3", "g4"]);
  assert.equal(second.next_cursor, null);
  assert.deepEqual(await of("none"), []);
  for (const run of [id, other]) assert.equal((await curfew.api("POST", `/v1/runs/${run}/cancel`, {})).status, 200);
});

test("the list contains the gates of all runs, oldest first, in pages", async () => {
  const ids = [await waiting(review()), await waiting(review())];
  const [first, second] = [await openGate(ids[0]!), await openGate(ids[1]!)];
  assert.ok(first.opened_at <= second.opened_at);
  const order = async () => (await curfew.api("GET", "/v1/gates?limit=1000")).json.items.map((gate: GateView) => gate.run_id);
  assert.deepEqual((await order()).filter((id: string) => ids.includes(id)), ids);
  const paged: string[] = [];
  for (let path = "/v1/gates?limit=1"; ; ) {
    const { json } = await curfew.api("GET", path);
    assert.ok(json.items.length <= 1);
    paged.push(...json.items.map((gate: GateView) => gate.run_id));
    if (json.next_cursor === null) break;
    path = `/v1/gates?limit=1&cursor=${encodeURIComponent(json.next_cursor)}`;
  }
  assert.deepEqual(paged, await order());
  for (const id of ids) assert.equal((await decide(id, "g1", { choice: "reject" })).status, 200);
});

test("timeout of a gate: fail, approve, reject, cancel_all", async () => {
  const timed = (on_timeout: string | undefined) => review({ timeout_ms: 400, on_timeout });
  for (const policy of ["approve", "reject"]) {
    const run = await curfew.runToEnd(timed(policy));
    assertCompleted(run);
    assert.equal(run.output.choice, policy);
    assert.equal(run.output.by, "timeout");
    assert.deepEqual(await visited(run.id), ["review", policy === "approve" ? "publish" : "discard"]);
  }
  for (const policy of ["fail", undefined]) {
    const run = await curfew.runToEnd(timed(policy));
    assert.equal(run.status, "failed");
    assert.deepEqual([run.error?.class, run.error?.node_id], ["timeout", "review"]);
    assert.equal((await curfew.tokens(run.id))[0]?.status, "timed_out");
  }
  const cancelled = await curfew.runToEnd(timed("cancel_all"));
  assert.equal(cancelled.status, "timed_out");
  const late = await decide(cancelled.id, "g1", { choice: "approve" });
  assert.equal(late.status, 409, late.text);
  assert.equal(late.json.error.details.status, "timed_out");
  await goneGate(cancelled.id);
});

test("a gate that timed out takes its timeout route", async () => {
  const document = review({ timeout_ms: 400 });
  document.nodes.push(markNode("late"));
  (document["actions"] as object[]).push(markAction("late"));
  (document["transitions"] as object[]).push({ from_node_id: "review", to_node_id: "late", on: "timeout" });
  document["output_mapping"] = "${state.late}";
  const run = await curfew.runToEnd(document);
  assertCompleted(run);
  assert.deepEqual(await visited(run.id), ["review", "late"]);
});

test("a reminder is sent before the timeout", async () => {
  const id = await waiting(review({ timeout: "20s", remind_at: [0.02] }));
  const gate = await until("the reminder", async () => (await listed(id)).find((gate) => gate.reminded_at !== null));
  assert.ok((gate.reminded_at ?? 0) >= gate.opened_at + 400, JSON.stringify(gate));
  assert.equal(gate.status, "open");
  assert.equal((await decide(id, gate.id, { choice: "approve" })).status, 200);
});

test("a run is waiting only if every live token is", async () => {
  const key = freshId("k");
  const document = workflow({
    nodes: [{ id: "start" }, { id: "review", gate: {} }, { id: "work", action_id: "ask" }],
    transitions: ["review", "work"].map((id) => ({ from_node_id: "start", to_node_id: id })),
    actions: [ask],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: `${peer.url}/held/${key}` });
  await until("the request at the peer", () => peer.seen(`/held/${key}`).length === 1);
  assert.equal((await curfew.run(id)).status, "running");
  peer.release(key);
  await until("the run to wait", async () => (await curfew.run(id)).status === "waiting");
  await until("the index to be updated", async () => {
    const { json } = await curfew.api("GET", "/v1/runs?status=waiting&limit=1000");
    return json.items.some((run: { id: string }) => run.id === id);
  });
  assert.equal((await decide(id, "g2", { choice: "approve" })).status, 200);
  assertCompleted(await curfew.ended(id));
});

test("an approval takes longer than the workflow may: the clock of its limit stands still at the gate", async () => {
  const [stops, runs] = ["stops_at_gates", "runs"].map((clock) => ({ ...review(), timeout: "2s", clock }));
  const [id, other] = await Promise.all([waiting(stops!), waiting(runs!)]);
  const timedOut = await curfew.ended(other);
  assert.deepEqual([timedOut.status, timedOut.error?.code], ["timed_out", "workflow_timeout"]);
  const open = await until("4 s at the gate", async () => {
    const run = await curfew.run(id);
    return (run.duration_ms ?? 0) > 4_000 && run;
  });
  assert.deepEqual([open.status, open.timeout_at, open.timeout_ms], ["waiting", null, 2_000]);
  const left = open.deadlines.find(({ kind }) => kind === "workflow")?.remaining_ms ?? 0;
  assert.ok(left > 1_500 && left <= 2_000, `${left} ms left`);
  const decided = await decide(id, "g1", { choice: "approve" });
  assert.equal(decided.status, 200, decided.text);
  assertCompleted(await curfew.ended(id));
});

test("cancelling the run closes its gate; an unknown gate is a 404", async () => {
  const id = await waiting(review());
  await openGate(id);
  const unknown = await decide(id, "g99", { choice: "approve" });
  assert.equal(unknown.status, 404, unknown.text);
  assert.equal((await decide("no-such-run", "g1", { choice: "approve" })).status, 404);
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`)).status, 200);
  await goneGate(id);
  const late = await decide(id, "g1", { choice: "approve" });
  assert.equal(late.status, 409, late.text);
  assert.equal(late.json.error.details.status, "cancelled");
  assert.deepEqual(await visited(id), ["review"]);
});

test("read lists gates, operate decides them", async () => {
  const document = review();
  const stored = await guarded.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN);
  assert.equal(stored.status, 201, stored.text);
  const { json: run } = await guarded.api("POST", `/v1/workflows/${document.id}/runs`, {}, OPERATE);
  await until("the gate in the list", async () => (await listed(run.id, READ, guarded))[0]);
  const path = `/v1/runs/${run.id}/gates/g1`;
  assert.equal((await guarded.api("GET", "/v1/gates")).status, 401);
  assert.equal((await guarded.api("POST", path, { choice: "approve" })).status, 401);
  assert.equal((await guarded.api("POST", path, { choice: "approve" }, READ)).status, 403);
  assert.equal((await guarded.api("POST", path, { choice: "approve" }, OPERATE)).status, 200);
});
