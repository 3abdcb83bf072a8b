import assert from "node:assert/strict";
import { test } from "node:test";
import { played, referencesOf, requestOf, scenarioOf, type Scenario } from "./scenario.ts";

const document = {
  id: "order",
  timeout: "1h",
  nodes: [
    { id: "pay", action_id: "charge", compensate: { task_id: "refund" } },
    { id: "ask", gate: { timeout: "4m", choices: ["yes", "no"] } },
    { id: "paid", wait: { signal: "payment" } },
    { id: "child", workflow_id: "ship", workflow_version: 3 },
  ],
  actions: [{ id: "charge", kind: "http_request" }],
};

const refusal = (mock: object) => Object.assign(new Error("a mock is missing"), { code: "no_mock", details: { mock } });

test("a scenario begins with the first choice of each gate, in half of its time, and with each signal", () => {
  const { gates, signals, calls } = scenarioOf(document, {});
  assert.deepEqual(gates, [{ gate: "ask", choices: ["yes", "no"], choice: "yes", afterMs: 120_000 }]);
  assert.deepEqual(signals, [{ name: "payment", comes: true, afterMs: 60_000 }]);
  assert.deepEqual(calls, []);
  for (const odd of [undefined, 3, { nodes: [null, { id: 4, gate: {} }, { id: "x", gate: { choices: 7 } }] }]) scenarioOf(odd, {});
});

test("missing mocks, decisions and signals are added until the engine answers", async () => {
  const asked: any[] = [];
  const ask = async (request: any) => {
    asked.push(request);
    const has = (node: string) => request.mocks.some((mock: any) => mock.node === node);
    if (!has("pay")) throw refusal({ node: "pay", step: "charge", result: { status: 200 } });
    if (!has("child")) throw refusal({ node: "child", result: {} });
    if (!request.people.some(({ gate }: any) => gate === "inner")) return { events: [], waits_for: [{ for: "decision", choices: ["ok"], add: { gate: "inner", choice: "ok" } }] };
    return { events: [{ kind: "gate_opened", gate_kind: "workflow_timeout" }], waits_for: [] };
  };
  const { scenario } = await played(ask, document, {}, scenarioOf(document, {}));
  assert.equal(asked.length, 4);
  assert.deepEqual(scenario.calls.map(({ key, afterMs, outcome }) => [key, afterMs, outcome]), [["pay / charge", 200, "answers"], ["child", 200, "answers"]]);
  assert.deepEqual(scenario.gates.map(({ gate, choice }) => [gate, choice]), [["ask", "yes"], ["inner", "ok"], ["timeout", ""]]);
});

test("an engine that asks for the same again, or refuses otherwise, is not asked for ever", async () => {
  await assert.rejects(played(async () => Promise.reject(refusal({ node: "pay" })), document, {}, scenarioOf(document, {})), /a mock is missing/);
  await assert.rejects(played(async () => Promise.reject(new Error("broken")), document, {}, scenarioOf(document, {})), /broken/);
  let count = 0;
  await assert.rejects(played(async () => Promise.reject(refusal({ node: `n${(count += 1)}` })), document, {}, scenarioOf(document, {})), /more than 300/);
});

test("outcomes of calls are mocks, and limits are part of the workflow", () => {
  const base = scenarioOf(document, { amount: 7 });
  const call = (outcome: Scenario["calls"][number]["outcome"]): any => requestOf(document, {}, { ...base, calls: [{ key: "pay", mock: { node: "pay", result: 1 }, afterMs: 50, outcome }] }).mocks;
  assert.deepEqual(call("answers"), [{ node: "pay", after: 50, result: 1 }]);
  assert.deepEqual(call("fails"), [{ node: "pay", after: 50, fail: "server_error" }]);
  assert.deepEqual(call("fails_once"), [{ node: "pay", after: 50, fail: "server_error", times: 1 }, { node: "pay", after: 50, result: 1 }]);
  assert.deepEqual(call("hangs"), [{ node: "pay", hang: true }]);
  const request: any = requestOf(document, {}, { ...base, gates: [{ ...base.gates[0]!, choice: "" }], signals: [{ ...base.signals[0]!, comes: false }], lengths: new Map([["/timeout", 1_000]]) });
  assert.deepEqual([request.people, request.signals, request.workflow.timeout, request.input], [[], [], "1s", { amount: 7 }]);
});

test("references are those that the document does not hold itself", () => {
  assert.deepEqual(referencesOf(document), [
    { kind: "tasks", id: "refund", version: undefined },
    { kind: "workflows", id: "ship", version: 3 },
  ]);
  assert.deepEqual(referencesOf({ id: "refund", steps: [{ action_id: "undo" }, { action: { kind: "workflow_call", implementation: { workflow_id: "inner" } } }] }), [
    { kind: "actions", id: "undo", version: undefined },
    { kind: "workflows", id: "inner", version: undefined },
  ]);
});

test("a gate that needs four eyes is decided: nobody has started the run that is simulated", () => {
  const gated = { nodes: [null, { id: "ask", gate: { four_eyes: true, timeout: "4m" } }] };
  const request = requestOf(gated, { workflows: [gated] }, scenarioOf(gated, {}));
  const without = { nodes: [null, { id: "ask", gate: { timeout: "4m" } }] };
  assert.deepEqual([request["workflow"], request["documents"]], [without, { workflows: [without] }]);
});
