// everySeed: what it counts, what it reports, and that its report repeats.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../engine/engine.mjs";
import { KnownNames } from "./known_names.ts";
import { everySeed } from "./seeds.ts";
import { curfewTest, EngineError, expectRun, SeedFailure, type SeedRun } from "./index.ts";

const workflow = {
  id: "order",
  timeout: "10m",
  on_timeout: "fail",
  actions: [{ id: "charge", kind: "http_request", implementation: { method: "POST", url: "https://pay.example/charge" } }],
  nodes: [{ id: "pay", action_id: "charge" }, { id: "thank", action_id: "charge" }],
  transitions: [{ from_node_id: "pay", to_node_id: "thank" }],
} as const;
const kit = curfewTest({ workflow }).mock({ action: "charge", after: "1s", result: { status: 200, headers: {}, body: {} } });

/** The failure of `kit.everySeed`. */
function failure(count: number, options: Parameters<typeof kit.everySeed>[1], check: (run: SeedRun) => void): SeedFailure {
  try {
    kit.everySeed(count, options, check);
  } catch (error) {
    assert.ok(error instanceof SeedFailure, String(error));
    return error;
  }
  assert.fail("no seed failed");
}

const isPaidTwice = (run: SeedRun): boolean => run.callsOf("pay").filter(({ outcome }) => outcome === "result").length > 1;

test("each seed is another run, and is seen", () => {
  const seen: number[] = [];
  const summary = kit.everySeed(60, { first_seed: 100 }, (run) => void seen.push(run.seed));
  assert.equal(new Set(seen).size, 60);
  assert.deepEqual(seen, seen.filter((seed) => seed >= 100 && seed < 160).sort((left, right) => left - right));
  assert.equal(summary.seeds, 60);
  assert.equal(Object.values(summary.statuses).reduce((sum, count) => sum! + count!, 0), 60);
  assert.ok(summary.faults > 60, JSON.stringify(summary));
});

test("without faults there are none", () => {
  assert.deepEqual(kit.everySeed(30, { faults: { events: 0 } }), { seeds: 30, statuses: { completed: 30 }, errors: {}, faults: 0 });
});

test("a seed that fails is reported with its shortest history, which repeats", () => {
  const check = (run: SeedRun): void => assert.ok(!isPaidTwice(run), "paid twice");
  const found = failure(200, {}, check);
  assert.match(found.message, new RegExp(`^seed ${found.seed} fails: paid twice\nIts shortest history has faults in the first \\d+ events: \\w+ at `));
  assert.match(found.message, /\norder, limit 10m0s: /);
  assert.ok(found.message.endsWith(`\nRepeat it: start(input, ${JSON.stringify({ seed: found.seed, faults: found.faults })}).finish()`), found.message);
  assert.equal((found.cause as Error).message, "paid twice");
  // The same run by hand.
  const { seed, faults, run } = found;
  const repeated = kit.start({}, { seed, faults }).finish();
  assert.equal(repeated.timeline(), run!.timeline());
  assert.deepEqual([repeated.calls, repeated.faults], [run!.calls, run!.faults]);
  // One event with faults less, and it does not fail.
  assert.ok(faults.events! > 0);
  kit.everySeed(1, { first_seed: seed, faults: { events: faults.events! - 1 } }, check);
});

test("the odds of the faults may be given", () => {
  const found = failure(50, { faults: { lost: 50, events: 40 } }, (run) => assert.equal(run.calls.length, 2));
  assert.deepEqual(Object.keys(found.faults).sort(), ["events", "lost"]);
  assert.ok(found.run!.faults.every(({ fault }) => fault === "lost"), found.message);
});

test("no run is given up because commits were refused", () => {
  const { errors, faults } = kit.everySeed(200, { faults: { commit_fails: 50 } });
  assert.ok(faults > 200, String(faults));
  // An executor whose report was refused six times is lost, as in production.
  assert.deepEqual(Object.keys(errors).filter((code) => code !== "attempt_lost"), []);
});

test("a run that was given up is a bug in Curfew", () => {
  const error = { code: "internal_error", class: "permanent", message: "given up: a bug of Curfew. What was done is kept" };
  const run = { id: "r", workflow_id: "order", status: "failed", error, started_at: 0, ended_at: 9, timeout_ms: 60_000 };
  const ok = { run, tokens: [], events: [], timeouts: [], calls: [], virtual_ms: 9, faults: [] };
  const engine = { call: () => ({ answers: [{ seed: 0, ok }] }) } as unknown as Engine;
  const plan = { count: 1, first_seed: 0, faults: {}, more: {}, names: new KnownNames(workflow), check: () => assert.fail("not asked") };
  assert.throws(() => everySeed(engine, {}, plan), /^SeedFailure: seed 0 fails: given up: a bug of Curfew\. What was done is kept\. Please report it/);
  // The same code from a peer is a failure like others.
  assert.throws(() => everySeed({ call: () => ({ answers: [{ seed: 0, ok: { ...ok, run: { ...run, error: { ...error, message: "database" } } } }] }) } as unknown as Engine, {}, plan), /not asked/);
});

test("a matcher that fails is reported with one timeline", () => {
  const { message } = failure(3, {}, (run) => expectRun(run).toHaveFailed());
  assert.match(message, /^seed \d fails: expected the run to have failed; it completed with .*\nIts shortest history has/);
  assert.equal(message.split("\norder, limit").length, 2, message);
});

test("the call that repeats a seed has the limit and the name of its start", () => {
  const check = (run: SeedRun) => assert.equal(run.run.timeout_ms, 1);
  const { message } = failure(3, { timeout: "90m", by: "ada" }, check);
  assert.match(message, /Repeat it: start\(input, \{"seed":0,"faults":\{"events":0\},"timeout":"90m","by":"ada"\}\)\.finish\(\)$/);
});

test("a check that always fails has a history without faults", () => {
  const found = failure(3, {}, () => assert.fail("always"));
  assert.deepEqual([found.seed, found.faults, found.run!.faults], [0, { events: 0 }, []]);
});

test("a run that does not end is a failure that says what to add", () => {
  const asking = curfewTest({ workflow: { id: "ask", timeout: null, nodes: [{ id: "approve", gate: {} }] } });
  assert.throws(() => asking.everySeed(5), /seed 0 fails: the run has not ended: it waits for a decision at "approve"; add \{"choice":"approve","gate":"approve"\} to its people/);
  assert.equal(asking.people({ gate: "approve", choice: "reject" }).everySeed(5).seeds, 5);
});

test("a called run that waits for a signal is a failure that says how to test it", () => {
  const child = { id: "child", timeout: null, nodes: [{ id: "posted", wait: { signal: "posted" } }] } as const;
  const calling = curfewTest({ workflow: { id: "calling", timeout: null, nodes: [{ id: "call", workflow_id: "child" }] }, documents: { workflows: [child] } });
  assert.throws(() => calling.everySeed(2), /a called run waits for a signal at "posted".*: test that workflow alone, and mock the node that calls it/);
});

test("a call without a mock has nothing to do with the seed", () => {
  assert.throws(() => curfewTest({ workflow }).everySeed(5), (error: unknown) => error instanceof EngineError && error.code === "no_mock");
});

test("a name that the workflow does not have has nothing to do with the seed", () => {
  assert.throws(() => kit.everySeed(5, {}, (run) => run.callsOf("payy" as "pay")), { name: "UnknownName", message: /did you mean "pay"/ });
});

test("what is refused", () => {
  for (const wrong of [0, -1, 1.5, NaN]) assert.throws(() => kit.everySeed(wrong), /write how many seeds/);
  assert.throws(() => kit.everySeed(1, {}, (async () => {}) as never), /returned a promise/);
  assert.throws(() => kit.everySeed(1, { faults: { lost: 101 } }), /100/);
  assert.throws(() => kit.everySeed(1, { faults: { losst: 1 } as never }), /losst/);
  assert.throws(() => kit.everySeed(1, { first_seed: -1 }), /first_seed/);
  assert.throws(() => kit.everySeed(1, (() => {}) as never), /the options of everySeed are \[Function.*\]; write an object with input, timeout/);
  assert.throws(() => kit.everySeed(1, {}, "check" as never), /its third argument/);
  assert.throws(() => kit.everySeed(1, { inputs: {} } as never), /everySeed has no option "inputs"; did you mean "input"\?/);
});
