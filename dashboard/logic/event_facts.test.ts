import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunEvent } from "../../client/index.ts";
import { factsOf } from "./event_facts.ts";
import { moment } from "./words.ts";

test("lengths and moments of an event are in words, anything else as it is", () => {
  const at = Date.parse("2026-03-01T12:00:00Z");
  const event = { seq: 3, at, kind: "deadline_warning", token_id: "t1", node_id: "a", due_at: at + 60_000, remaining_ms: 47_000, timeout_duration_ms: 240_000, policy: "fail", nothing: null, odd: { deep: [1] } } as unknown as RunEvent;
  assert.deepEqual(factsOf(event), [
    ["due at", moment(at + 60_000, at)],
    ["remaining", "47 s"],
    ["timeout", "4m 00s"],
    ["policy", "fail"],
    ["odd", '{"deep":[1]}'],
  ]);
});

test("fields that are of another kind than their names say are shown as text", () => {
  assert.deepEqual(factsOf({ seq: 1, at: 0, kind: "x", due_at: "noon", wait_ms: "long" } as unknown as RunEvent), [["due at", "noon"], ["wait ms", "long"]]);
});
