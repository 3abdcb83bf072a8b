// POST /v1/simulate: documents of the body and of the catalogue, refusals, scopes, and how long a request takes.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { freshId, workflow } from "./document-builders.ts";
import { READ, root, startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
const BOUND = "bound-token-0123456789";
before(async () => {
  const tokens = { [READ]: "read", [BOUND]: { name: "bo", roles: ["read"], workflows: ["open-*"] } };
  curfew = await startCurfew({ vars: { CURFEW_DEV: "on" } });
  bound = await startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify({ ...tokens, "admin-token-0123456789": "admin" }) } });
});
let bound: Curfew;
after(() => Promise.all([curfew.dispose(), bound.dispose()]));

const simulate = (body: unknown) => curfew.api("POST", "/v1/simulate", body);

/** A day with three retries of a call and a gate. */
const day = () => ({
  workflow: workflow({
    timeout: "72h",
    actions: [
      {
        id: "charge",
        kind: "http_request",
        implementation: { method: "POST", url: "https://pay.example/charge", body: { amount: "${input.amount}" } },
        execution: { retry_policy: { max_attempts: 4, initial_delay: "1m" } },
      },
    ],
    nodes: [
      { id: "ask", gate: { timeout: "48h" } },
      { id: "rest", wait: { sleep: "20h" } },
      { id: "pay", action_id: "charge" },
    ],
    transitions: [
      { from_node_id: "ask", to_node_id: "rest" },
      { from_node_id: "rest", to_node_id: "pay" },
    ],
  }),
  input: { amount: 7 },
  mocks: [
    { node: "pay", times: 3, after: "2s", fail: "server_error" },
    { node: "pay", result: { status: 200, headers: {}, body: {} } },
  ],
  people: [{ gate: "ask", after: "4h", choice: "approve" }],
});

describe("simulate", () => {
  test("a day takes a moment", async () => {
    const { status, json } = await simulate(day());
    assert.equal(status, 200, JSON.stringify(json));
    assert.equal(json.run.status, "completed");
    assert.ok(json.virtual_ms > 86_400_000, `${json.virtual_ms}`);
    assert.deepEqual(json.calls.map((call: { outcome: string }) => call.outcome), ["failed", "failed", "failed", "result"]);
    assert.ok(json.dollars > 0 && json.dollars < 0.001, `${json.dollars}`);
  });

  test("a stored workflow is read with its tasks, actions and children", async () => {
    const [child, action] = [freshId("child"), freshId("action")];
    await curfew.api("PUT", `/v1/actions/${action}`, { kind: "service_call", implementation: { binding: "ECHO" } });
    await curfew.store(workflow({ id: child, nodes: [{ id: "c", action_id: action }], output_mapping: "${state.c}" }));
    const parent = workflow({ nodes: [{ id: "call", workflow_id: child }], output_mapping: "${state.call}" });
    await curfew.store(parent);
    const { status, json } = await simulate({ workflow_id: parent.id, mocks: [{ action, result: { n: 1 } }] });
    assert.equal(status, 200, JSON.stringify(json));
    assert.deepEqual([json.run.output, json.children.length], [{ n: 1 }, 1]);
    assert.equal((await simulate({ workflow_id: parent.id, version: 9 })).status, 404);
    const runs = await curfew.api("GET", `/v1/runs?workflow=${parent.id}`);
    assert.deepEqual(runs.json.items, [], "nothing was started");
  });

  test("refusals say what to do", async () => {
    const unmocked = await simulate({ ...day(), mocks: [] });
    assert.deepEqual([unmocked.status, unmocked.json.error.code], [422, "no_mock"]);
    assert.equal(unmocked.json.error.details.mock.node, "pay");
    const unknown = await simulate({ ...day(), mock: [] });
    assert.equal(unknown.status, 400, JSON.stringify(unknown.json));
    const endless = workflow({
      timeout: null,
      limits: { loop_iterations: 1_000_000, tokens_total: 1_000_000 },
      nodes: [{ id: "a", wait: { sleep: "1m" } }, { id: "b" }],
      transitions: [
        { from_node_id: "a", to_node_id: "b" },
        { from_node_id: "b", to_node_id: "a", loop_config: { max_iterations: 1_000_000 } },
      ],
    });
    const stopped = await simulate({ workflow: endless });
    assert.deepEqual([stopped.status, stopped.json.error.code], [422, "limit_exceeded"], JSON.stringify(stopped.json));
  });

  test("a credential that is bound to workflows simulates those", async () => {
    const asBound = (body: unknown) => bound.api("POST", "/v1/simulate", body, BOUND);
    const [open, closed] = [workflow({ id: freshId("open"), nodes: [{ id: "a" }] }), workflow({ id: freshId("closed"), nodes: [{ id: "a" }] })];
    for (const document of [open, closed]) {
      const stored = await bound.api("PUT", `/v1/workflows/${document.id}`, document, "admin-token-0123456789");
      assert.equal(stored.status, 201, stored.text);
    }
    assert.equal((await asBound({ workflow_id: open.id })).status, 200);
    assert.equal((await asBound({ workflow_id: closed.id })).status, 403);
    const calls = workflow({ nodes: [{ id: "call", workflow_id: closed.id }] });
    assert.equal((await asBound({ workflow: calls })).status, 403);
    assert.equal((await bound.api("POST", "/v1/simulate", { workflow: open }, READ)).status, 200);
    assert.equal((await bound.api("POST", "/v1/simulate", { workflow: open })).status, 401);
  });

  test("the answer is the one that the engine gives elsewhere", async () => {
    // engine/engine.test.mjs and tests/simulate/golden.rs compare with the same file.
    const { request, answer } = JSON.parse(readFileSync(join(root, "tests/golden/simulation.json"), "utf8"));
    const { json } = await simulate(request);
    assert.deepEqual(json, answer);
  });
});
