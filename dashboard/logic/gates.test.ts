import assert from "node:assert/strict";
import { test } from "node:test";
import type { Gate, Timeout, Token } from "../../client/index.ts";
import { byDeadline, choiceSentence, doneSoFar, fourEyes, promptOf, recordOf, stateOf, withoutDecision } from "./gates.ts";

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
  assert.equal(withoutDecision(gate({ timeout_at: 60_000, kind: "escalation", node_id: null }), document), "Without a decision the run fails after 1m 00s.");
  assert.equal(withoutDecision(gate({ timeout_at: 60_000, kind: "escalation", node_id: null }), {}), "Without a decision the run ends as timed out after 1m 00s.");
  assert.equal(withoutDecision(gate({ timeout_at: 60_000, kind: "escalation" }), document), "Without a decision the node fails after 1m 00s.");
  assert.equal(withoutDecision(gate({ timeout_at: 60_000 }), null), "Without a decision the node fails after 1m 00s.");
});

test("who may decide where four eyes are needed", () => {
  const document = { nodes: [{ id: "ask", gate: { four_eyes: true } }] };
  assert.equal(fourEyes(gate({}), document, "ada", "ben"), "Another person than ada has to decide.");
  assert.equal(fourEyes(gate({}), document, "ada", "ada"), "You have started the run: another person has to decide.");
  assert.match(fourEyes(gate({}), document, null, "ada") ?? "", /without a name: nobody can decide/);
  assert.deepEqual([fourEyes(gate({}), undefined, "ada", "ada"), fourEyes(gate({ node_id: "other" }), document, "ada", "ada")], [undefined, undefined]);
});

test("the question of a gate, and what comes with it", () => {
  assert.deepEqual(promptOf(gate({ prompt: "Pay?" })), { text: "Pay?", more: undefined });
  assert.deepEqual(promptOf(gate({ prompt: { text: "Retry it?", error: { code: "http_422" } } as never })), { text: "Retry it?", more: { error: { code: "http_422" } } });
  assert.deepEqual(promptOf(gate({ prompt: { question: 1 } as never })), { text: '{\n  "question": 1\n}', more: undefined });
});

test("the state of a run in a sentence", () => {
  assert.equal(stateOf({ duration_ms: 51_000, timeout_ms: 7_200_000, counts: { completed: 1, awaiting_human: 2 } } as never), "It has taken 51 s; its limit is 2h 00m. 3 tokens: 1 completed, 2 awaiting human.");
  assert.equal(stateOf({ duration_ms: 51_000, timeout_ms: null, counts: {} } as never), "It has taken 51 s.");
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

test("choices of gates that Curfew opens say what they do", () => {
  assert.match(choiceSentence(gate({ kind: "escalation" }), "retry")!, /the node is tried again/);
  assert.match(choiceSentence(gate({ kind: "escalation", node_id: null }), "retry")!, /the run goes on/);
  assert.match(choiceSentence(gate({ kind: "workflow_timeout", node_id: null }), "extend")!, /more time/);
  for (const kind of ["node", "oracle"]) assert.equal(choiceSentence(gate({ kind: kind as Gate["kind"] }), "approve"), undefined);
});
