import assert from "node:assert/strict";
import { test } from "node:test";
import { limitSentence, outerSentence, progressSentence, smallestSentence, usedParts, usedSentence, usualSentence, whyOf, type TimeoutWhy } from "./why.ts";

const step: TimeoutWhy = {
  limit: { layer: "execution", source: "node", timeout_ms: 30_000, pointer: "/nodes/1/timeout" },
  outer: { layer: "workflow", passed_first: false, left_ms: 29_760 },
  used: { queued_ms: 40, waited_ms: 1_000, stopped_ms: null, attempts: [{ epoch: 1, duration_ms: 20_000, ended: "failed" }, { epoch: 2, duration_ms: 9_000, ended: "timed_out" }] },
  usual: { node_id: "send", samples: 25, p50_ms: 800, p99_ms: 2_100, source: "latencies" },
  smallest_limit_ms: null,
  smallest_limit_reason: "more than 30s: the call had not answered when it was cut",
};

test("a record says why in sentences", () => {
  assert.equal(limitSentence(step), "The limit of an attempt was 30 s, written at the node.");
  assert.equal(limitSentence({ limit: { layer: "workflow", source: "preset", preset: "flow", timeout_ms: 60_000, extended_ms: 5_000 } }), "The limit of the run was 1m 00s, the default of the preset flow; 5.0 s of it are extensions.");
  assert.equal(outerSentence(step), "The limit of the run had 29 s left.");
  assert.deepEqual(usedParts(step).map(({ name, ms }) => [name, ms]), [["queued", 40], ["attempts", 29_000], ["waits before retries", 1_000]]);
  assert.equal(usedSentence(step), "What used the time: attempts 29 s, waits before retries 1.0 s, queued 40 ms.");
  assert.equal(usualSentence(step), "Usually half of the runs of send are done in 800 ms, 99 of 100 in 2.1 s (25 samples).");
  assert.equal(smallestSentence(step), "Which limit would have held is not known: more than 30s: the call had not answered when it was cut.");
  assert.equal(smallestSentence({ smallest_limit_ms: 7_501, smallest_limit_reason: "the last result came 7.5s after the first" }), "A limit of 7.5 s would have held: the last result came 7.5s after the first.");
  assert.equal(progressSentence({ used: { branches: 3, arrived: 1, needed: 2, missing: [] } }), "1 of 3 branches had arrived, 2 more were needed.");
  assert.equal(progressSentence({ used: { reminders: 1 } }), "The gate had sent 1 reminder.");
});

test("absent and unknown fields are nothing, and nothing is thrown", () => {
  for (const record of [undefined, null, 3, {}, { why: null }, { why: [] }, { why: "late" }]) assert.equal(whyOf(record), undefined);
  const odd = whyOf({ why: { limit: { layer: "moon", source: "tide" }, outer: null, used: { attempts: "many", nodes: null }, usual: {}, change: null } })!;
  assert.equal(limitSentence(odd), "The limit of moon passed, written at the tide.");
  assert.deepEqual([outerSentence(odd), usedParts(odd), progressSentence(odd), usualSentence(odd), smallestSentence(odd)], ["", [], "", "", ""]);
  assert.equal(usedSentence(odd), "");
  const empty = whyOf({ why: {} })!;
  assert.deepEqual([limitSentence(empty), outerSentence(empty), usedParts(empty), progressSentence(empty), usualSentence(empty), smallestSentence(empty)], ["", "", [], "", "", ""]);
});
