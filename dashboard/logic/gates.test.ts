import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gate, Timeout, Token } from "../../client/index.ts";
import { byDeadline, doneSoFar, needsFourEyes, recordOf, withoutDecision } from "./gates.ts";

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

test("what was done so far, and what was under way", () => {
  const token = (node_id: string, status: string) => ({ node_id, status }) as Token;
  assert.deepEqual(doneSoFar([]), ["Nothing is done yet."]);
  assert.deepEqual(doneSoFar([token("a", "completed"), token("b", "completed"), token("b", "completed"), token("c", "executing"), token("d", "failed"), token("e", "orbiting")]), ["Done so far: a, b ×2.", "Under way: c, e."]);
  const many = Array.from({ length: 12 }, (_, index) => token(`n${index}`, "completed"));
  assert.match(doneSoFar(many)[0]!, /n9 and 2 more\.$/);
});

test("a gate of the run's limit belongs to the last record of it", () => {
  const record = (id: number, scope: string, due_at: number) => ({ id, timeout_event: { scope, due_at, timeout_ms: 1_500 }, last_known_state: { phase: "running" } }) as unknown as Timeout;
  const records = [record(1, "flow", 10), record(2, "flow", 20), record(3, "step", 25), record(4, "flow", 40)];
  const asked = gate({ kind: "workflow_timeout", opened_at: 30 });
  assert.equal(recordOf(asked, records)?.id, 2);
  assert.equal(recordOf(asked, []), undefined);
});
