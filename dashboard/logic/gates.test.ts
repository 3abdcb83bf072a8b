import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gate } from "../../client/index.ts";
import { byDeadline, needsFourEyes, withoutDecision } from "./gates.ts";

const gate = (fields: Partial<Gate>) => ({ id: "g", kind: "node", node_id: "ask", opened_at: 0, timeout_at: null, ...fields }) as Gate;

test("the nearest deadline comes first, none comes last", () => {
  const gates = [gate({ id: "a" }), gate({ id: "b", timeout_at: 9 }), gate({ id: "c", timeout_at: 5 }), gate({ id: "d", opened_at: -1 })];
  assert.deepEqual(byDeadline(gates).map(({ id }) => id), ["c", "b", "d", "a"]);
});

test("what happens without a decision", () => {
  const document = { gate: { on_timeout: "fail" }, nodes: [{ id: "ask", gate: { on_timeout: "approve", four_eyes: true } }] };
  assert.equal(withoutDecision(gate({}), document), "Without a decision it waits on.");
  assert.equal(withoutDecision(gate({ timeout_at: 60_000 }), document), "Without a decision it counts as approved after 1m 00s.");
  assert.equal(withoutDecision(gate({ timeout_at: 60_000, kind: "workflow_timeout", node_id: null }), document), "Without a decision the run fails after 1m 00s.");
  assert.equal(withoutDecision(gate({ timeout_at: 60_000 }), null), "Without a decision the node fails after 1m 00s.");
  assert.deepEqual([needsFourEyes(gate({}), document), needsFourEyes(gate({}), undefined)], [true, false]);
});
