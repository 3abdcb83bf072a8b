// GET /v1/runs/{id}/export and POST /v1/runs/{id}/what-if, on real runs: what they have, what they refuse, who may ask. Every other test
// file replays its ended runs unchanged (replay-check.ts).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, freshId, oneRequest, workflow } from "./document-builders.ts";
import { ADMIN, READ, root, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

const BOUND = "bound-token-0123456789";
let curfew: Curfew;
let withRoles: Curfew;
let peer: Peer;
before(async () => {
  const tokens = { ...JSON.parse(roleVars.CURFEW_TOKENS), [BOUND]: { name: "bo", roles: ["read"], workflows: ["open-*"] } };
  [curfew, withRoles, peer] = await Promise.all([startCurfew(), startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify(tokens) } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), withRoles.dispose(), peer.close()]));

const whatIf = (id: string, body: unknown) => curfew.api("POST", `/v1/runs/${id}/what-if`, body);
const set = (path: string, value: unknown) => ({ changes: [{ op: "add", path, value }] });

async function replayed(id: string, body: unknown): Promise<any> {
  const answer = await whatIf(id, body);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

/** A call of 400 ms, a person, and a join of three calls, the last of which takes longest. */
const document = () =>
  workflow({
    timeout: "1h",
    actions: [ask],
    nodes: [
      { id: "first", action_id: "ask", input_mapping: { url: "${input.slow}" }, timeout: "20s" },
      { id: "decide", gate: { timeout: "1h" } },
      { id: "split" },
      { id: "work", action_id: "ask", input_mapping: { url: "${input.urls[_branch.index]}" } },
      { id: "join" },
    ],
    transitions: [
      { from_node_id: "first", to_node_id: "decide" },
      { from_node_id: "decide", to_node_id: "split" },
      { id: "out", from_node_id: "split", to_node_id: "work", spawn_count: 3 },
      { from_node_id: "work", to_node_id: "join", synchronization: { strategy: "all", sibling_group: "out", timeout: "1m", merge: { target: "state.all", strategy: "append" } } },
    ],
  });

describe("a recorded run under other limits and policies", () => {
  let id: string;
  before(async () => {
    const flow = document();
    await curfew.store(flow);
    const slow = (millis: number) => `${peer.url}/slow/${millis}`;
    id = await curfew.start(flow.id, { slow: slow(400), urls: [slow(10), slow(50), slow(900)] });
    const gate = await until("the gate", async () => (await curfew.api("GET", `/v1/gates?run=${id}`)).json.items[0]);
    assert.equal((await curfew.api("POST", `/v1/runs/${id}/gates/${gate.id}`, { choice: "approve", by: "ada" })).status, 200);
    assertCompleted(await curfew.ended(id));
  });

  test("unchanged, its status, path, timeouts and retries are the recorded ones", async () => {
    const { recorded, replayed: again, differences, unknown } = await replayed(id, {});
    assert.deepEqual([differences, unknown], [[], []]);
    assert.deepEqual(again.tokens.map((token: any) => [token.token_id, token.status]), recorded.tokens.map((token: any) => [token.token_id, token.status]));
    assert.ok(Math.abs(again.duration_ms - recorded.duration_ms) <= 50, `${again.duration_ms} instead of ${recorded.duration_ms}`);
  });

  test("a limit that its call would not have met ends it; one that it would have met does not", async () => {
    const cut = await replayed(id, set("/nodes/0/timeout", "200ms"));
    assert.deepEqual([cut.replayed.status, cut.replayed.error.code], ["failed", "execution_timeout"]);
    assert.equal(cut.replayed.timeouts[0].timeout_ms, 200);
    assert.equal((await replayed(id, set("/nodes/0/timeout", "10s"))).replayed.status, "completed");
  });

  test("a call or a person that takes longer is cut by the limit that is there, and what took time is listed", async () => {
    const { recorded_durations } = await replayed(id, {});
    assert.deepEqual(recorded_durations.map(({ node, gate, answers }: any) => [node ?? `gate ${gate}`, answers]), [["first", 1], ["work", 3], ["gate decide", 1]]);
    const later = await replayed(id, { durations: [{ node: "first", after: "15s" }, { gate: "decide", after: "30m" }] });
    assert.equal(later.replayed.status, "completed");
    assert.ok(Math.abs(later.replayed.duration_ms - 1_815_900) < 1_000, String(later.replayed.duration_ms));
    const cut = await replayed(id, { durations: [{ node: "first", after: "25s" }] });
    assert.deepEqual([cut.replayed.error.code, cut.replayed.timeouts[0].timeout_ms], ["execution_timeout", 20_000]);
    const nobody = await replayed(id, { durations: [{ gate: "decide", after: "2h" }] });
    assert.equal(nobody.replayed.timeouts[0].node_id, "decide");
  });

  test("a join with another strategy goes on earlier, and a person decides as long after the gate opened", async () => {
    const any = await replayed(id, set("/transitions/3/synchronization/strategy", "any"));
    assert.equal(any.replayed.status, "completed");
    assert.ok(any.recorded.duration_ms - any.replayed.duration_ms > 500, JSON.stringify(any.differences));
    const opened = (outcome: any) => outcome.tokens.find((token: any) => token.node_id === "decide");
    assert.equal(opened(any.replayed).ended_at_ms - opened(any.replayed).created_at_ms, opened(any.recorded).ended_at_ms - opened(any.recorded).created_at_ms);
  });

  test("what the recording cannot answer for is said, and the replay stops there", async () => {
    const other = await replayed(id, set("/nodes/0/input_mapping", { url: "${input.urls[0]}", more: 1 }));
    assert.equal(other.replayed.status, "completed", "the answer of the recorded call counts");
    const again = await replayed(id, { changes: [{ op: "add", path: "/nodes/-", value: { id: "after", action_id: "ask", input_mapping: { url: "${input.slow}" } } }, { op: "add", path: "/transitions/-", value: { from_node_id: "join", to_node_id: "after" } }] });
    assert.deepEqual(again.unknown.map(({ node_id }: any) => node_id), ["after"]);
    assert.equal(again.replayed.status, "running");
  });

  test("another stored version of the workflow", async () => {
    const { workflow_id, version } = await curfew.run(id);
    const stored = (await curfew.api("GET", `/v1/workflows/${workflow_id}`)).json.document;
    stored.nodes[0].timeout = "100ms";
    const next = await curfew.store(stored);
    assert.equal(next, version + 1);
    assert.equal((await replayed(id, { version: next })).replayed.status, "failed");
    assert.equal((await replayed(id, { version })).replayed.status, "completed");
    assert.deepEqual([(await whatIf(id, { version: 99 })).status, (await whatIf(id, { version: 0 })).status], [404, 422]);
  });

  test("what is refused, and where", async () => {
    for (const [body, status, pointer] of [
      [{ change: [] }, 400, "/change"],
      [{ changes: {} }, 422, "/changes"],
      [{ durations: [{ node: "frist", after: 1 }] }, 422, "/durations/0/node"],
      [{ durations: [{ node: "first", after: "soon" }] }, 422, "/durations/0/after"],
      [{ durations: [{ node: "first", afterwards: 1 }] }, 400, "/durations/0/afterwards"],
      [set("/nodes/9/timeout", "1s"), 422, "/changes/0/path"],
      [set("/nodes/0/timeout", "soon"), 422, "/nodes/0/timeout"],
      [set("/nodes/0/action_id", "nowhere"), 422, "/nodes/0/action_id"],
      [{ changes: Array.from({ length: 1_001 }, () => ({})) }, 422, undefined],
    ] as const) {
      const answer = await whatIf(id, body);
      assert.deepEqual([answer.status, answer.json.error.pointer], [status, pointer], answer.text);
    }
    assert.equal((await whatIf("no-such-run", {})).status, 404);
    assert.equal((await curfew.api("GET", "/v1/runs/no-such-run/export")).status, 404);
    assert.equal((await curfew.api("GET", `/v1/runs/${id}/export?redact=names`)).status, 400);
  });

  test("its export has the history and the documents; without values it cannot be played", async () => {
    const { json: whole } = await curfew.api("GET", `/v1/runs/${id}/export`);
    assert.equal(whole.format, "curfew-export/1");
    assert.deepEqual(whole.events, (await curfew.api("GET", `/v1/runs/${id}/events?limit=1000`)).json.items);
    assert.deepEqual(whole.tokens, await curfew.tokens(id));
    assert.equal(whole.gates[0].decision.choice, "approve");
    assert.equal(whole.document.nodes[0].id, "first");
    const { json: redacted, text } = await curfew.api("GET", `/v1/runs/${id}/export?redact=values`);
    assert.deepEqual([redacted.run.input, redacted.tokens[0].output, redacted.redacted], [null, null, true]);
    assert.ok(!text.includes(`${peer.url}/slow`), "nothing of the input");
  });

  test("the engine's own wasm plays the export offline, with the same answer", async () => {
    const { loadEngine } = await import("../../engine/engine.mjs");
    const wasm = join(root, "engine", "engine.wasm");
    const engine = await loadEngine(readFileSync(wasm));
    const { json: exported } = await curfew.api("GET", `/v1/runs/${id}/export`);
    for (const body of [{}, set("/nodes/0/timeout", "200ms"), { durations: [{ node: "first", after: "25s" }] }]) {
      assert.deepEqual(engine.call({ op: "what_if", export: exported, ...body }), await replayed(id, body));
    }
  });
});

test("a call that hangs is not known under a longer limit, and a request takes milliseconds", async () => {
  const flow = oneRequest("${input.url}", { node: { timeout_ms: 300 } });
  await curfew.store(flow);
  const id = await curfew.start(flow.id, { url: `${peer.url}/hang/${freshId("h")}` });
  assert.equal((await curfew.ended(id)).status, "failed");
  const { unknown, differences } = await replayed(id, { changes: [{ op: "replace", path: "/nodes/0/timeout_ms", value: 5_000 }] });
  assert.equal(unknown[0].node_id, "work");
  assert.deepEqual(differences, []);
});

test("the role read suffices, and a credential for other workflows sees nothing of the run", async () => {
  const flow = workflow({ nodes: [{ id: "a" }] });
  assert.equal((await withRoles.api("PUT", `/v1/workflows/${flow.id}`, flow, ADMIN)).status, 201);
  const { json: run } = await withRoles.api("POST", `/v1/workflows/${flow.id}/runs?wait_ms=5000`, { input: {} }, ADMIN);
  const asked = (token?: string) => Promise.all([withRoles.api("POST", `/v1/runs/${run.id}/what-if`, {}, token), withRoles.api("GET", `/v1/runs/${run.id}/export`, undefined, token)]);
  for (const [token, status] of [[READ, 200], [BOUND, 403], [undefined, 401]] as const) {
    assert.deepEqual((await asked(token)).map((answer) => answer.status), [status, status]);
  }
  // It has the documents of called workflows, too, which this credential may not read.
  const child = workflow({ nodes: [{ id: "a" }] });
  const parent = workflow({ nodes: [{ id: "call", workflow_id: child.id }] });
  parent.id = freshId("open");
  for (const one of [child, parent]) assert.equal((await withRoles.api("PUT", `/v1/workflows/${one.id}`, one, ADMIN)).status, 201);
  const { json: calling } = await withRoles.api("POST", `/v1/workflows/${parent.id}/runs?wait_ms=5000`, { input: {} }, ADMIN);
  const exported = await withRoles.api("GET", `/v1/runs/${calling.id}/export`, undefined, BOUND);
  assert.deepEqual([exported.status, exported.json.error.message.includes(child.id)], [403, true], exported.text);
  assert.equal((await withRoles.api("POST", `/v1/runs/${calling.id}/what-if`, {}, BOUND)).status, 200);
});
