// The check of `npm run bench -- --check`: a missed limit is reported, with both numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isMissed, limitsOf, missedLimits, type Results } from "./limits.ts";

const workload = (name: string, nodes: number, curfew: number, ratios: Record<string, number>) => ({
  name,
  nodes,
  figures: { workflows: { p50_ms: 100 }, ...Object.fromEntries(Object.keys(ratios).map((contender) => [contender, { p50_ms: curfew }])) },
  ratios,
  dollars: { curfew: 2.5 },
});

/** Results that miss no limit. */
const within = (): Results => ({
  workloads: [
    workload("one step", 1, 12, { curfew: 1.56 }),
    workload("chain of 50", 50, 34, { curfew: 1.07, "curfew, inline": 0.33 }),
    workload("chain of 50, two hops", 50, 51, { curfew: 1.34 }),
    workload("fan of 100", 100, 14, { curfew: 0.31 }),
  ],
  throughput: { ratio: 0.98, times_workflows: 2.65 },
  rows: { rows_per_node: 2, rows_besides: 7 },
  dispatches_of_three_steps: 1,
  loop: { nodes: [10_000, 30_000], ratio: 0.96 },
  time: {
    floor: { late_p99_ms: 7 },
    run: { late_p99_ms: 13 },
    call: { late_p99_ms: 6 },
    floor_executor_gone: { late_p99_ms: 6 },
    call_executor_gone: { late_p99_ms: 4 },
    at_once: { tokens: 1_000, client_late_max_ms: 100 },
    waiting: { rows_while_it_waits: 0, alarm_before_the_end_ms: 0 },
  },
  credentials: { added_ms: 0.03 },
  live: { watchers: 20, one_watcher_ratio: 1.04, late_p99_ms: 9 },
  size: { gzip_kib: 1262, client_gzip_kib: 3.95, engine_gzip_kib: 880 },
  first_run: { seconds: 16.4 },
});

test("results within every limit miss none", () => {
  assert.deepEqual(missedLimits(within()), []);
});

test("a ratio above its limit is reported with both numbers", () => {
  const results = within();
  results.workloads.find(({ name }) => name === "chain of 50")!.ratios["curfew"] = 1.21;
  assert.deepEqual(missedLimits(results), ["chain of 50, lane direct, times the floor: 1.21, limit at most 1.2"]);
});

test("a throughput below its limit is reported", () => {
  const results = within();
  results.throughput.ratio = 0.59;
  assert.deepEqual(missedLimits(results), ["runs per second, times the floor's: 0.59, limit at least 0.6"]);
});

test("lateness is compared with the floor of the same run", () => {
  const results = within();
  results.time.floor.late_p99_ms = 40;
  results.time.run.late_p99_ms = 55;
  results.time.call.late_p99_ms = 56;
  assert.deepEqual(missedLimits(results), ["a call's timeout: p99, ms later than the floor's: 16, limit at most 15"]);
});

test("a figure that was not measured is a missed limit", () => {
  const results = within();
  results.workloads = results.workloads.filter(({ name }) => name !== "one step");
  assert.deepEqual(missedLimits(results), ["one step, times the floor: not measured, limit at most 1.7"]);
});

test("a figure at its limit is not missed", () => {
  for (const limit of limitsOf(within())) assert.equal(isMissed({ ...limit, measured: limit.limit }), false, limit.name);
});
