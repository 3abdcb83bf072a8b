import assert from "node:assert/strict";
import { test } from "node:test";
import type { Run, RunEvent, Token } from "../../client/index.ts";
import { instancesAround, rowsOf, visibleRows } from "./lanes.ts";
import { budgetEnd, innerLimits, runEnd, sourceOfLimit } from "./limits.ts";
import { domainOf, endOf, gateStopsOf, lateSince, laneOf, pausesOf, ticksOf, withBackoffs, zoomed } from "./timeline.ts";

const token = (fields: Partial<Token>): Token => ({
  id: "t1", node_id: "n", status: "completed", epoch: 1, retry_count: 0, lane: "direct", branch: null, parent_token_id: null,
  created_at: 0, dispatched_at: null, started_at: null, ended_at: null, timeout_at: null, timeout_ms: null, timeout_reason: null,
  reason: null, error: null, output: null, steps: [], ...fields,
});
const event = (fields: Partial<RunEvent>): RunEvent => ({ seq: 1, at: 0, kind: "token_created", token_id: "t1", ...fields });
const spans = (subject: Token, events: RunEvent[] = []) => laneOf(subject, events).spans.map(({ kind, from, to }) => `${kind} ${from}-${to ?? ""}`);

test("a token is queued, then at work", () => {
  const done = token({ dispatched_at: 10, started_at: 20, ended_at: 90 });
  assert.deepEqual(spans(done, [event({ kind: "token_dispatched", at: 10, epoch: 1 })]), ["queued 0-10", "queued 10-20", "attempt 20-90"]);
});

test("earlier attempts are in the events, with the delay between them", () => {
  const retried = token({ status: "executing", epoch: 2, started_at: 160, timeout_ms: 100, timeout_at: 260 });
  const events = [
    event({ kind: "token_dispatched", at: 10, epoch: 1 }),
    event({ kind: "token_retried", at: 110, delay_ms: 40 }),
    event({ kind: "token_dispatched", at: 150, epoch: 2 }),
  ];
  assert.deepEqual(spans(retried, events), ["queued 0-10", "attempt 10-110", "backoff 110-150", "queued 150-160", "attempt 160-"]);
  assert.deepEqual(laneOf(retried, events).limits, [{ from: 10, to: 110, epoch: 1 }, { from: 160, to: 260, epoch: 2 }]);
});

test("what is after the deadline is late", () => {
  assert.deepEqual(spans(token({ status: "timed_out", started_at: 10, ended_at: 115, timeout_at: 100 })), ["queued 0-10", "attempt 10-100", "late 100-115"]);
  const { spans: drawn } = laneOf(token({ status: "timed_out", started_at: 10, ended_at: 115, timeout_at: 100 }));
  assert.deepEqual(endOf(drawn), drawn[1], "the attempt has the colour of the end");
  assert.equal(endOf([]), undefined);
});

test("a token without a task waits", () => {
  assert.deepEqual(spans(token({ status: "awaiting_human", lane: null, started_at: 5, epoch: 0 })), ["queued 0-5", "waiting 5-"]);
  assert.deepEqual(spans(token({ status: "waiting_for_siblings", started_at: 0, ended_at: 50 })), ["attempt 0-50", "waiting 50-"]);
});

test("a token that took no time is drawn", () => {
  assert.deepEqual(spans(token({ lane: null, created_at: 5, ended_at: 5 })), ["attempt 5-5"]);
});

test("a status and an event of a later version are drawn", () => {
  assert.deepEqual(spans(token({ status: "frozen" as Token["status"] }), [event({ kind: "token_frozen" as RunEvent["kind"], at: 7 })]), ["queued 0-"]);
});

test("the pause of a limit begins at the limit", () => {
  const events = [
    event({ kind: "run_paused", at: 103, cause: "workflow_timeout" }),
    event({ kind: "run_paused", at: 110, cause: "person" }),
    event({ kind: "run_resumed", at: 200, paused_ms: 100 }),
    event({ kind: "run_paused", at: 300, cause: "person" }),
  ];
  assert.deepEqual(pausesOf(events).map(({ from, to }) => [from, to]), [[100, 200], [300, undefined]]);
});

test("an attempt is not late while its clock stands still", () => {
  assert.equal(lateSince(100, [], 150), 100);
  assert.equal(lateSince(100, [], 90), undefined);
  assert.equal(lateSince(null, [], 90), undefined);
  assert.equal(lateSince(100, [{ from: 101, to: undefined, why: "" }], 5_000), undefined);
  assert.equal(lateSince(100, [{ from: 50, to: 60, why: "" }], 5_000), 100);
});

test("a call that was cut in a stopped run is followed by waiting, not by more of the call", () => {
  const cut = token({ id: "t1", status: "pending", epoch: 1, lane: "direct", created_at: 0, dispatched_at: 10, started_at: 10, timeout_ms: 500 });
  const { spans } = laneOf(cut, [event({ kind: "token_dispatched", at: 10, epoch: 1, token_id: "t1" })]);
  assert.deepEqual(spans.map(({ kind, from, to }) => [kind, from, to]), [["queued", 0, 10], ["attempt", 10, 510], ["queued", 510, undefined]]);
});

test("the clock stands still only while every live token is at a gate", () => {
  const tokens = [token({ id: "t1", status: "awaiting_human", created_at: 0 }), token({ id: "t2", created_at: 0, ended_at: 50 })];
  const opened = event({ kind: "gate_opened", at: 20, token_id: "t1" });
  assert.deepEqual(gateStopsOf(tokens, [opened]).map(({ from, to }) => [from, to]), [[50, undefined]]);
  const decided = [token({ id: "t1", created_at: 0, ended_at: 80 }), tokens[1]!];
  assert.deepEqual(gateStopsOf(decided, [opened, event({ kind: "gate_decided", at: 80, token_id: "t1" })]).map(({ from, to }) => [from, to]), [[50, 80]]);
});

const branch = (instance: number, index: number, total = 3) => ({ group: "g", instance, index, total, item: null, output: null });

test("branches are one row until they are opened, inner ones too", () => {
  const tokens = [
    token({ id: "t1" }),
    token({ id: "t2", parent_token_id: "t1", branch: branch(1, 0, 2), ended_at: 10 }),
    token({ id: "t3", parent_token_id: "t1", branch: branch(1, 1, 2), ended_at: 20 }),
    token({ id: "t4", parent_token_id: "t2", branch: branch(2, 1), status: "failed", ended_at: 30 }),
    token({ id: "t5", parent_token_id: "t2", branch: branch(2, 0), ended_at: 30 }),
    token({ id: "t6", parent_token_id: "t4", branch: branch(1, 0, 2), ended_at: 40 }),
    token({ id: "t7", parent_token_id: "t6" }),
  ];
  const keys = (open: number[]) => rowsOf(tokens, new Set(open)).map(({ key, depth }) => `${" ".repeat(depth)}${key}`);
  assert.deepEqual(keys([]), ["t1", "g1", "t7"]);
  assert.deepEqual(keys([1]), ["t1", "g1", " t2", " g2", " t6", " t3", "t7"]);
  assert.deepEqual(keys([1, 2]), ["t1", "g1", " t2", " g2", "  t5", "  t4", " t6", " t3", "t7"]);
  const folded = rowsOf(tokens, new Set()).find((row) => row.kind === "group");
  assert.deepEqual(folded?.kind === "group" && [folded.tokens.length, folded.branches, folded.counts, folded.to], [5, 2, [["completed", 4], ["failed", 1]], 40]);
  assert.deepEqual(instancesAround(tokens, "t4"), [2, 1]);
});

test("a thousand branches cost a screen of rows", () => {
  const tokens = Array.from({ length: 1_000 }, (_, index) => token({ id: `t${index + 1}`, branch: branch(1, index, 1_000) }));
  assert.equal(rowsOf(tokens, new Set([1])).length, 1_001);
  assert.deepEqual(visibleRows(10_000, 400, 26, 1_001), { first: 380, last: 404 });
});

const run = (fields: Partial<Run>) => ({ started_at: 0, ended_at: null, timeout_at: null, deadlines: [], ...fields }) as unknown as Run;

test("the limit is shown at first where the work is seen beside it", () => {
  assert.ok(domainOf(run({ timeout_at: 400 }), [], 100).to >= 400);
  assert.ok(domainOf(run({ timeout_at: 400_000 }), [], 100).to < 400);
  assert.ok(domainOf(run({ timeout_at: 400_000 }), [], 100, "limit").to >= 400_000);
});

test("the scale has few round steps", () => {
  assert.deepEqual(ticksOf({ from: 0, to: 100_000 }, 0, 6), [0, 30_000, 60_000, 90_000]);
  assert.ok(ticksOf({ from: 0, to: 1e12 }, 0, 6).length <= 7);
  const near = zoomed({ from: 0, to: 100 }, 0.5, 50);
  assert.deepEqual(near, { from: 25, to: 75 });
});

test("an extension does not move inner limits", () => {
  const parked = run({
    timeout_at: null,
    deadlines: [
      { kind: "workflow", remaining_ms: 0 },
      { kind: "execution", remaining_ms: 500, token_id: "t1", node_id: "a" },
      { kind: "gate", due_at: 90_000, gate_id: "g" },
    ],
  });
  assert.equal(runEnd(parked, 1_000), 1_000);
  assert.equal(budgetEnd(parked, [{ from: 400, to: undefined }], 1_000), 400);
  assert.equal(budgetEnd(parked, [{ from: 400, to: 500 }], 1_000), 1_000);
  assert.deepEqual(innerLimits(parked, 60_000, 1_000).map(({ kind, at }) => [kind, at]), [["execution", 1_500]]);
});

test("a limit names its source", () => {
  const document = { nodes: [{ id: "n", task_id: "k" }, { id: "o", timeout: "5s" }], tasks: [{ id: "k", timeout_ms: 60_000, steps: [] }] };
  assert.match(sourceOfLimit(token({ timeout_ms: 60_000 }), run({}), document), /from the task k \(1m 00s\)/);
  assert.match(sourceOfLimit(token({ node_id: "o", timeout_ms: 5_000 }), run({}), document), /from the node \(5s\)/);
  assert.match(sourceOfLimit(token({ timeout_ms: 5_000, timeout_reason: "adaptive" }), run({}), document), /adaptive/);
  assert.match(sourceOfLimit(token({}), run({}), null), /no limit of its own/);
});

test("the clock of a run is stopped while the runs that it called wait for people", () => {
  const tokens = [token({ id: "t1", ended_at: 5 }), token({ id: "t2", created_at: 5, status: "waiting_for_subworkflow" }), token({ id: "t3", created_at: 5, status: "waiting_for_subworkflow" })];
  const paused = [event({ kind: "subworkflow_paused", at: 40, token_id: "t2" }), event({ kind: "subworkflow_paused", at: 60, token_id: "t3" })];
  const stops = (events: RunEvent[]) => gateStopsOf(tokens, events).map(({ from, to }) => [from, to]);
  assert.deepEqual(stops(paused.slice(0, 1)), []);
  assert.deepEqual(stops(paused), [[60, undefined]]);
  assert.deepEqual(stops([...paused, event({ kind: "subworkflow_resumed", at: 90, token_id: "t2" })]), [[60, 90]]);
});

test("the delays between the calls of an attempt are drawn inside of it", () => {
  const retry = (after_ms: number | undefined, delay_ms: number) => ({ class: "server_error", code: "http_503", delay_ms, ...(after_ms !== undefined && { after_ms }) });
  const step = (duration_ms: number, ...retries: ReturnType<typeof retry>[]) => ({ ref: "call", status: "completed", attempts: retries.length + 1, duration_ms, retries });
  const drawn = (fields: Partial<Token>): string[] => {
    const subject = token({ started_at: 100, ended_at: 400, ...fields });
    return withBackoffs(laneOf(subject, [event({ kind: "token_dispatched", at: 100, epoch: subject.epoch })]), subject).spans.map(({ kind, from, to }) => `${kind} ${from}-${to}`);
  };
  const steps = [step(50), step(250, retry(10, 40), retry(120, 80))] as Token["steps"];
  assert.deepEqual(drawn({ steps }), ["queued 0-100", "attempt 100-160", "backoff 160-200", "attempt 200-270", "backoff 270-350", "attempt 350-400"]);
  assert.deepEqual(drawn({ steps: null as unknown as Token["steps"] }), ["queued 0-100", "attempt 100-400"]);
  // Servers of earlier builds do not say when; and what an earlier attempt had done lies outside.
  assert.deepEqual(drawn({ steps: [step(50, retry(undefined, 40))] as Token["steps"] }), ["queued 0-100", "attempt 100-400"]);
  assert.deepEqual(drawn({ steps: [step(900), step(250, retry(10, 40))] as Token["steps"] }), ["queued 0-100", "attempt 100-400"]);
});
