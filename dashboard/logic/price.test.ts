import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { priceOfMillion, usageOf } from "./price.ts";

const { answer } = JSON.parse(readFileSync(new URL("../../tests/golden/simulation.json", import.meta.url), "utf8"));

test("the estimate of a run is near what the engine counts", () => {
  const { dollars, rows } = usageOf(answer.run, answer.tokens, answer.events, 0);
  assert.ok(dollars > answer.dollars * 0.75 && dollars < answer.dollars * 1.25, `${dollars * 1e6} instead of ${answer.dollars * 1e6} millionths`);
  assert.ok(rows > 15, String(rows));
});

test("calls that overlap keep the object awake once, and no longer than their limit", () => {
  const token = (id: string, at: number, ended_at: number | null, timeout_ms: number | null) =>
    ({ id, status: ended_at === null ? "executing" : "completed", lane: "direct", epoch: 1, created_at: at, dispatched_at: at, started_at: at, ended_at, timeout_ms, timeout_at: timeout_ms && at + timeout_ms }) as any;
  const tokens = [token("t1", 0, 100, null), token("t2", 50, 150, 900), token("t3", 1_000, 9_000, 2_000), token("t4", 5_000, null, null)];
  const events = tokens.map(({ id, dispatched_at }) => ({ kind: "token_dispatched", token_id: id, at: dispatched_at, epoch: 1 }) as any);
  assert.equal(usageOf({ ended_at: null }, tokens, events, 5_500).awakeMs, 150 + 2_000 + 500);
  assert.equal(usageOf({ ended_at: null }, [], [], 0).awakeMs, 0);
});

test("prices are text that can be compared", () => {
  assert.deepEqual([0.0000129, 0.000345, 0.354, Number.NaN, 0].map(priceOfMillion), ["$12.90", "$345", "$354,000", "unknown", "$0.00"]);
});
