import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunEvent, Token } from "../../client/index.ts";
import { inOrder, withEvent } from "./live_tokens.ts";

const event = (kind: string, fields: Partial<RunEvent> = {}): RunEvent => ({ seq: 1, at: 5, kind: kind as RunEvent["kind"], token_id: "t2", node_id: "n", ...fields });

test("events create and end tokens", () => {
  let tokens: ReadonlyMap<string, Token> = new Map();
  tokens = withEvent(tokens, event("token_created"));
  tokens = withEvent(tokens, event("token_created", { token_id: "t1" }));
  tokens = withEvent(tokens, event("token_completed", { at: 9 }));
  assert.deepEqual(inOrder(tokens).map(({ id, status, ended_at }) => [id, status, ended_at]), [["t1", "pending", null], ["t2", "completed", 9]]);
});

test("what is no news changes nothing", () => {
  const tokens = withEvent(new Map(), event("token_created"));
  for (const other of [event("token_created"), event("run_started", { token_id: null }), event("token_completed", { token_id: "t9" }), event("token_frozen")]) {
    assert.equal(withEvent(tokens, other), tokens);
  }
});
