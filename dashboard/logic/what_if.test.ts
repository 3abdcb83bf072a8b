import assert from "node:assert/strict";
import { test } from "node:test";
import { laneOf } from "./timeline.ts";
import { drawn, durationsOf, lengthsOf, lengthsText, summary, whatIfOf } from "./what_if.ts";

const answer = {
  recorded: { status: "failed", duration_ms: 2_000, error: { code: "execution_timeout", message: "timed out" }, output: null, tokens: [], timeouts: [{ node_id: "think", token_id: "t1", scope: "step", timeout_ms: 700, at_ms: 700, final_action: "fail" }] },
  replayed: {
    status: "completed",
    duration_ms: 4_000,
    error: null,
    output: 7,
    tokens: [
      { token_id: "t1", node_id: "think", status: "completed", created_at_ms: 0, started_at_ms: 10, ended_at_ms: 3_990, timeout_ms: 5_000, retry_count: 1 },
      { token_id: "t2", node_id: "new", status: "completed", created_at_ms: 3_990, started_at_ms: null, ended_at_ms: 4_000, timeout_ms: null, retry_count: 0 },
    ],
    timeouts: [],
  },
  differences: [{ what: "status", recorded: "failed", replayed: "completed", message: "the run completes" }, { what: "token", node_id: "think", token_id: "t1", recorded: 1, replayed: 2 }],
  unknown: [{ node_id: "new", token_id: "t2", epoch: 1, at_ms: 3_990, message: "it was never called" }],
};

test("an answer is read, and drawn from its relative times", () => {
  const read = whatIfOf(answer);
  assert.equal(summary(read), "Recorded: failed after 2.0 s. The replay stops after 4.0 s.");
  assert.equal(summary({ ...read, unknown: [] }), "Recorded: failed after 2.0 s. Replayed: completed after 4.0 s.");
  assert.equal(summary({ ...read, unknown: [], differences: [], replayed: read.recorded }), "It would have been the same: failed after 2.0 s.");
  // It ended alike, but not everything was the same.
  assert.equal(summary({ ...read, unknown: [], replayed: read.recorded }), "Recorded: failed after 2.0 s. Replayed: failed after 2.0 s.");
  assert.deepEqual(read.differences.map(({ place, message }) => `${place}: ${message}`), ["the run: the run completes", "think t1: 1 became 2"]);
  assert.deepEqual(read.unknown, [{ place: "new t2", atMs: 3_990, message: "it was never called" }]);
  assert.deepEqual(read.recorded.timeouts, [{ place: "think t1", tokenId: "t1", timeoutMs: 700, atMs: 700, action: "fail" }]);
  const run = { id: "r", started_at: 1_000, status: "failed" } as any;
  const { tokens, stillAt, run: other } = drawn(read.replayed, run, [{ id: "t1", node_id: "think", lane: "direct", parent_token_id: null, branch: null } as any]);
  assert.deepEqual([stillAt, other.status, other.ended_at], [5_000, "completed", 5_000]);
  assert.deepEqual(tokens.map(({ id, lane, epoch, started_at, ended_at, timeout_at }) => [id, lane, epoch, started_at, ended_at, timeout_at]), [
    ["t1", "direct", 2, 1_010, 4_990, 6_010],
    ["t2", null, 1, null, 5_000, null],
  ]);
});

test("earlier attempts are drawn from the limits that ended them", () => {
  const token = { token_id: "t1", node_id: "think", status: "timed_out", created_at_ms: 0, started_at_ms: 1_400, ended_at_ms: 1_800, timeout_ms: 400, retry_count: 1 };
  const timeouts = [{ token_id: "t1", node_id: "think", timeout_ms: 400, at_ms: 400, final_action: "retry" }, { token_id: "t1", node_id: "think", timeout_ms: 400, at_ms: 1_800, final_action: "fail" }];
  const { replayed } = whatIfOf({ replayed: { status: "failed", duration_ms: 1_800, tokens: [token], timeouts } });
  const { tokens, events } = drawn(replayed, { started_at: 0 } as any, [{ id: "t1", node_id: "think", lane: "direct", parent_token_id: null, branch: null } as any]);
  const { spans } = laneOf(tokens[0]!, events);
  assert.deepEqual(spans.map(({ kind, from, to }) => [kind, from, to]), [["attempt", 0, 400], ["backoff", 400, 1_400], ["attempt", 1_400, 1_800]]);
});

test("nothing is thrown at an answer of another version", () => {
  for (const odd of [undefined, null, [], 7, {}, { recorded: 3, replayed: { status: 7, tokens: [null, { node_id: "x" }, { token_id: "t1" }], timeouts: "none" }, differences: {}, unknown: [3, {}] }]) {
    const read = whatIfOf(odd);
    drawn(read.replayed, { started_at: 0 } as any, []);
    assert.match(summary(read), /^(Recorded|It would have been the same): unknown/);
  }
});

test("what took time can take another time", () => {
  const items = [{ node: "think", answers: 3, shortest_ms: 200, longest_ms: 900 }, { gate: "approve", answers: 1, shortest_ms: 0, longest_ms: 0 }, { moon: "full" }, 7];
  const { durations } = whatIfOf({ recorded_durations: items });
  assert.deepEqual(durations.map(({ key, shortestMs, longestMs }) => [key, shortestMs, longestMs]), [["node/think", 200, 900], ["gate/approve", 1, 1]]);
  const wanted = new Map([["node/think", 30_000], ["gate/approve", 90_500], ["node/gone", 5]]);
  assert.deepEqual(durationsOf(durations, wanted), [{ node: "think", after: "30s" }, { gate: "approve", after: "90500ms" }]);
  assert.deepEqual(durationsOf(durations, new Map([["node/think", 900]])), [], "as recorded");
});

test("lengths are in the address", () => {
  const lengths = new Map([["/timeout", 5_000], ["/nodes/1/timeout", 250], ["node/think", 7]]);
  assert.deepEqual(lengthsOf(lengthsText(lengths)), lengths);
  assert.deepEqual(lengthsOf("/timeout=x,/timeout=-1,,=,=5"), new Map());
  assert.deepEqual(lengthsOf(null), new Map());
});
