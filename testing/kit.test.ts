// The kit: a run under way, what a test does to it, and what is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { curfewTest, EngineError, expectRun } from "./index.ts";

const workflow = {
  id: "payment",
  timeout: "240h",
  on_timeout: "human_gate",
  actions: [{ id: "charge", kind: "http_request", implementation: { method: "POST", url: "https://pay.example/charge" } }],
  nodes: [
    { id: "approve", gate: { choices: ["yes", "no"], timeout: "168h", on_timeout: "fail" } },
    { id: "pay", action_id: "charge", timeout: "30s" },
    { id: "ship", wait: { signal: "shipped", timeout: "48h" } },
  ],
  transitions: [
    { from_node_id: "approve", to_node_id: "pay" },
    { from_node_id: "pay", to_node_id: "ship" },
  ],
  output_mapping: { by: "${state.approve.choice}", parcel: "${state.ship.parcel}" },
} as const;

const HOUR = 3_600_000;
const paid = { node: "pay", after: "2s", result: { status: 200, headers: {}, body: { id: "c1" } } } as const;
const payment = curfewTest({ workflow }).mock(paid);

/** The error that `action` throws. */
function refusal(action: () => unknown): any {
  try {
    action();
  } catch (error) {
    return error;
  }
  assert.fail("nothing was thrown");
}

test("time passes when a test lets it pass", () => {
  const run = payment.start();
  assert.deepEqual([run.status, run.at_ms], ["waiting", 0]);
  assert.deepEqual(run.gates.map(({ gate, choices }) => [gate, choices]), [["approve", ["yes", "no"]]]);
  run.advance("1d12h").advance(1_000);
  assert.equal(run.at_ms, 36 * HOUR + 1_000);
  run.decide("approve", "yes", { note: "fine" });
  assert.deepEqual(run.visited, ["approve", "pay"]);
  assert.deepEqual(run.calls.map(({ outcome }) => outcome), ["open"]);
  run.next();
  assert.equal(run.at_ms, 36 * HOUR + 3_000);
  expectRun(run).toWaitFor("shipped");
  run.signal("shipped", { parcel: 7 });
  expectRun(run).toHaveCompleted({ by: "yes", parcel: 7 });
  assert.equal(run.events.at(-1)!.kind, "run_completed");
  // An ended run stays as it is, whatever time passes.
  assert.equal(run.advance("7d").run.duration_ms, 36 * HOUR + 3_000);
});

test("people and signals that are known beforehand need no step of the test", () => {
  const run = payment.people({ gate: "approve", after: "2d", choice: "no", by: "ada" }).signals({ name: "shipped", at: "3d", payload: { parcel: 1 } }).start().finish();
  expectRun(run).toHaveCompleted({ by: "no", parcel: 1 });
  assert.equal(run.run.duration_ms, 72 * HOUR);
});

test("a later mock comes before those that the kit has, and leaves the kit as it was", () => {
  const broken = payment.mock({ node: "pay", times: 1, fail: { class: "rate_limited", retry_after: "1m" } });
  const run = broken.start().decide("approve", "yes").advance("2m");
  assert.deepEqual(run.callsOf("pay").map(({ at_ms, outcome }) => [at_ms, outcome]), [[0, "failed"]]);
  expectRun(payment.start().decide("approve", "yes").advance("1m")).toHaveCalled("pay", 1);
});

test("the limit of a run, an extension, a pause and a cancellation", () => {
  const late = payment.start({}, { timeout: "5m" });
  late.decide("approve", "yes").advance("10m");
  expectRun(late).toWaitFor("timeout");
  late.decide("timeout", "extend", { by_ms: 60 * HOUR }).signal("shipped", { parcel: 2 });
  expectRun(late).toHaveCompleted();

  const extended = payment.start({}, { timeout: "5m" }).decide("approve", "yes").extend("1d").advance("10m");
  assert.equal(extended.status, "waiting");
  const paused = extended.pause();
  assert.equal(paused.status, "paused");
  expectRun(paused.advance("20d").resume().cancel("not wanted")).toHaveStatus("cancelled");
});

test("a called workflow is simulated if the kit has it, and its gates are decided like others", () => {
  const child = { id: "child", nodes: [{ id: "ask", gate: { timeout: "1h", on_timeout: "fail" } }] } as const;
  const parent = { id: "parent", nodes: [{ id: "call", workflow_id: "child" }] } as const;
  const run = curfewTest({ workflow: parent, documents: { workflows: [child] } }).start();
  assert.deepEqual(run.gates.map(({ gate, run_id }) => [gate, run_id === run.run.id]), [["ask", false]]);
  expectRun(run.decide("ask", "approve").finish()).toHaveCompleted();
  assert.deepEqual(run.children.map((child) => child.run.status), ["completed"]);
  const mocked = curfewTest({ workflow: parent }).mock({ node: "call", after: "30m", result: { ok: true } }).start().finish();
  expectRun(mocked).toHaveCompleted();
  assert.equal(mocked.run.duration_ms, HOUR / 2);
});

test("time passes until the run waits for a gate, a signal or its limit", () => {
  const run = payment.start({}, { timeout: "100h" }).until("approve");
  assert.equal(run.at_ms, 0);
  run.decide("approve", "yes").until("shipped");
  assert.deepEqual([run.at_ms, run.status], [2_000, "waiting"]);
  assert.equal(run.until("ship").at_ms, 2_000);
  const child = { id: "child", timeout: "24h", nodes: [{ id: "begin", wait: { sleep: "3h" } }, { id: "ask", gate: { timeout: "1h" } }], transitions: [{ from_node_id: "begin", to_node_id: "ask" }] } as const;
  const parent = { id: "parent", timeout: "24h", on_timeout: "human_gate", nodes: [{ id: "call", workflow_id: "child" }] } as const;
  const calling = curfewTest({ workflow: parent, documents: { workflows: [child] } });
  assert.equal(calling.start().until("ask").at_ms, 3 * HOUR);
  assert.equal(calling.start({}, { timeout: "1h" }).until("timeout").at_ms, HOUR);
});

test("until is an error where the run ends before, or where nothing more happens", () => {
  const never = (action: () => unknown, message: RegExp) => assert.throws(action, { code: "ERR_ASSERTION", message });
  never(() => payment.start().until("shipped"), /^the run never waited for shipped; it has ended\n\npayment, limit 240h0m0s: failed after 168h0m0s/);
  never(() => payment.start().until("approve").pause().until("shipped"), /^the run never waited for shipped; nothing more happens\n\npayment/);
  assert.throws(() => payment.start().until("aprove" as "approve"), { name: "UnknownName", message: /did you mean "approve"/ });
});

test("a mock and a decision at what the documents do not have are refused when a run starts", () => {
  const read = JSON.parse(JSON.stringify(workflow));
  assert.throws(() => curfewTest({ workflow: read }).mock({ node: "payy", result: {} }).start(), { name: "UnknownName", message: /no place for calls "payy"; did you mean "pay"/ });
  assert.throws(() => curfewTest({ workflow: read }).people({ gate: "aprove", choice: "yes" }).everySeed(1), { name: "UnknownName", message: /no gate "aprove"; did you mean "approve"/ });
});

test("a call without a mock names the mock to add", () => {
  const error = refusal(() => curfewTest({ workflow }).start().decide("approve", "yes"));
  assert.ok(error instanceof EngineError);
  assert.equal(error.code, "no_mock");
  assert.match(error.message, /node "pay" makes a http_request .* add one to "mocks", for example \{"node":"pay"/);
});

test("what the run refuses is an error of the test", () => {
  const run = payment.start();
  assert.match(refusal(() => run.decide("pay", "yes")).message, /gate "pay" is not open 0s after the start: open are "approve"/);
  const wrong = refusal(() => run.decide("approve", "perhaps" as "yes"));
  assert.deepEqual([wrong instanceof EngineError, wrong.status, wrong.pointer], [true, 422, "/choice"], wrong.message);
  assert.equal(refusal(() => payment.start().cancel().resume()).code, "run_finished");
  assert.equal(run.status, "waiting");
  assert.match(refusal(() => run.decide("approve", "yes").decide("approve", "yes")).message, /not open/);
  assert.match(refusal(() => payment.start().cancel().decide("approve", "yes")).message, /is not open 0s after the start: the run has ended as cancelled$/);
  assert.match(refusal(() => payment.start({}, { timeout: "9999d" })).message, /outside/);
  assert.match(refusal(() => curfewTest({ workflow: { ...workflow, initial_node_id: "none" } }).start()).message, /none/);
});

test("what is no duration is refused before anything happens", () => {
  const run = payment.start();
  for (const wrong of ["", "7", "7 days", "-1h", "d", "1w"]) assert.match(refusal(() => run.advance(wrong)).message, /is no duration; write for example .* 7d/, wrong);
  for (const wrong of [-1, NaN, Infinity]) assert.match(refusal(() => run.advance(wrong)).message, /is no duration/);
  assert.match(refusal(() => run.advance("400000d")).message, /thousand years/);
  assert.equal(run.at_ms, 0);
});

test("wrong values are errors that say what to write", () => {
  const run = payment.start() as any;
  const kit = payment as any;
  const wrong: [action: () => unknown, message: RegExp][] = [
    [() => curfewTest({ workflow, mock: [] } as any), /curfewTest has no option "mock"; did you mean "mocks"\?/],
    [() => curfewTest(null as any), /the options of curfewTest are null; write an object with workflow/],
    [() => kit.start({}, { timeot: "1h" }), /start has no option "timeot"; did you mean "timeout"\?/],
    [() => kit.mock(null).start(), /\/mocks\/0: expected an object/],
    [() => kit.people(null).start(), /\/people\/0: expected an object/],
    [() => curfewTest({ workflow: { id: "w", nodes: [null] } as any, mocks: [{ node: "x", result: 1 }] as any }).start(), /\/nodes\/0: expected an object/],
    [() => curfewTest({ workflow, documents: { workflows: {} } } as any).start(), /\/documents\/workflows/],
    [() => run.advance(), /undefined is no duration/],
    [() => run.extend({}), /\{\} is no duration/],
    [() => run.until(), /undefined is no name/],
    [() => run.callsOf(5), /5 is no name/],
    [() => expectRun(run).not.toHaveVisited("approve" as any), /'approve' is no list of nodes/],
    [() => expectRun(run).toHaveCompensated(undefined as any), /undefined is no list/],
    [() => expectRun(run).not.toHaveCalled("pay", "1" as any), /'1' is no number of calls/],
    [() => expectRun(run).toHaveStatus(undefined as any), /undefined is no status/],
  ];
  for (const [action, message] of wrong) assert.match(refusal(action).message, message, String(action));
});

test("a gate with four_eyes compares who starts with who decides", () => {
  const kit = curfewTest({ workflow: { id: "pair", nodes: [{ id: "ask", gate: { choices: ["yes"], four_eyes: true } }] } as const });
  const run = kit.start({}, { by: "ada" });
  assert.match(refusal(() => run.decide("ask", "yes", null, { by: "ada" })).message, /four_eyes/);
  assert.match(refusal(() => run.decide("ask", "yes")).message, /four_eyes/);
  assert.match(refusal(() => run.decide("ask", "yes", null, { bye: "bo" } as any)).message, /decide has no option "bye"; did you mean "by"\?/);
  expectRun(run.decide("ask", "yes", 7, { by: "bo", comment: "fine" })).toHaveCompleted();
  assert.deepEqual(run.tokens[0]!.output, { choice: "yes", input: 7, comment: "fine", by: "bo" });
  const summary = kit.people({ gate: "ask", choice: "yes", by: "bo" }).everySeed(5, { by: "ada" }, (run) => expectRun(run).toHaveCompleted());
  assert.equal(summary.statuses["completed"], 5);
});

test("a run that was left aside for more than a hundred others says so", () => {
  const first = payment.start();
  const kept = payment.start();
  for (let count = 0; count < 100; count += 1) {
    payment.start();
    kept.advance(1);
  }
  assert.equal(kept.at_ms, 100);
  assert.match(refusal(() => first.advance(1)).message, /there is no session .* start the run again/);
});

test("tasks go by the queue where the kit says so", () => {
  const queued = { id: "queued", actions: workflow.actions, nodes: [{ id: "pay", action_id: "charge", dispatch: "queue", timeout: "30s" }] } as const;
  const laneOf = (queue: boolean) => curfewTest({ workflow: queued, queue }).mock(paid).start().finish().tokens[0]!.lane;
  assert.deepEqual([laneOf(true), laneOf(false)], ["queue", "direct"]);
});

test("a seed always has the same history, from any moment", () => {
  const kit = curfewTest({ workflow, start_at: "2026-03-01T00:00:00Z" }).mock({ node: "pay", times: 2, fail: "server_error" }, paid);
  const paying = (seed: number) => kit.start({}, { seed }).decide("approve", "yes").advance("1h");
  assert.equal(paying(1).run.started_at, Date.parse("2026-03-01T00:00:00Z"));
  const moments = (seed: number) => paying(seed).calls.map(({ at_ms }) => at_ms);
  assert.deepEqual(moments(1), moments(1));
  assert.notDeepEqual(moments(1), moments(2));
});
