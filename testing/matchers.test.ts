// Matchers: what each of them is true of, and that a failure shows the timeline.
import assert from "node:assert/strict";
import { test } from "node:test";
import { curfewTest, expectRun, matchers } from "./index.ts";

const workflow = {
  id: "order",
  timeout: "1h",
  compensation: { on: ["failed"] },
  on_end: [{ on: ["failed"], action_id: "call" }, { on: ["cancelled"], action_id: "call" }],
  actions: [{ id: "call", kind: "service_call", implementation: { binding: "PEER" } }],
  nodes: [
    { id: "reserve", action_id: "call", compensate: { action_id: "call" } },
    { id: "ask", gate: { timeout: "5m", on_timeout: "fail" } },
    { id: "ship", wait: { signal: "shipped" } },
  ],
  transitions: [
    { from_node_id: "reserve", to_node_id: "ask" },
    { from_node_id: "ask", to_node_id: "ship" },
  ],
  output_mapping: { ok: true },
} as const;
const kit = curfewTest({ workflow }).mock({ action: "call", after: "2s", result: {} });

const begun = kit.start();
const asking = kit.start().advance("1m");
const shipping = kit.start().advance("1m").decide("ask", "approve");
const completed = kit.start().advance("1m").decide("ask", "approve").signal("shipped");
const failed = kit.start().finish();
const late = kit.start({}, { timeout: "1s" }).finish();

/** A matcher with its arguments, the runs that it is true of, and those that it is not. */
const table: [name: keyof typeof matchers, args: unknown[], fitting: (typeof begun)[], others: (typeof begun)[]][] = [
  ["toHaveCompleted", [], [completed], [begun, asking, failed, late]],
  ["toHaveCompleted", [{ ok: true }], [completed], [failed]],
  ["toHaveCompleted", [{ ok: false }], [], [completed]],
  ["toHaveCompleted", [undefined], [], [completed]],
  ["toHaveFailed", [], [failed], [completed, late]],
  ["toHaveFailed", ["gate_timeout"], [failed], [completed]],
  ["toHaveFailed", ["http_500"], [], [failed]],
  ["toHaveStatus", ["waiting"], [asking, shipping], [begun, completed]],
  ["toHaveTimedOut", [], [late], [failed, completed]],
  ["toHaveTimedOut", ["ask"], [failed, late], [completed]],
  ["toHaveTimedOut", ["reserve"], [], [failed, completed]],
  ["toHaveVisited", [["reserve", "ship"]], [completed], [asking, failed]],
  ["toHaveVisited", [["ship", "reserve"]], [], [completed]],
  ["toHaveVisited", [["ask", "ask"]], [], [completed]],
  ["toHaveCompensated", [["reserve"]], [failed], [completed]],
  ["toHaveCompensated", [[]], [completed, begun], [failed]],
  ["toWaitFor", ["timeout"], [], [begun, asking, completed]],
  ["toWaitFor", ["ask"], [asking], [begun, shipping, completed, failed]],
  ["toWaitFor", ["ship"], [shipping], [asking, completed]],
  ["toWaitFor", ["shipped"], [shipping], [asking]],
  ["toHaveCalled", ["reserve"], [begun, completed], []],
  ["toHaveCalled", ["reserve", 1], [begun], []],
  ["toHaveCalled", ["reserve", 2], [], [begun]],
  ["toHaveCalled", ["reserve~compensate", 1], [failed], [completed]],
  ["toHaveCalled", ["on_end~1"], [failed], [completed]],
  ["toHaveCalled", ["on_end~2"], [], [failed]],
  ["toHaveCalled", ["ask", 0], [completed], []],
];

for (const [name, args, fitting, others] of table) {
  test(`${name}(${args.map((arg) => JSON.stringify(arg)).join(", ")})`, () => {
    const [isExpected, isNot] = [(run: typeof begun) => (expectRun(run)[name] as any)(...args), (run: typeof begun) => (expectRun(run).not[name] as any)(...args)];
    for (const run of fitting) {
      isExpected(run);
      assert.throws(() => isNot(run), { code: "ERR_ASSERTION", message: /^expected the run not to / });
    }
    for (const run of others) {
      isNot(run);
      assert.throws(() => isExpected(run), { code: "ERR_ASSERTION", message: /^expected the run to / });
    }
  });
}

test("a compensation that times out is not its node", () => {
  const run = kit.mock({ node: "reserve~compensate", hang: true }).start().finish();
  expectRun(run).toHaveTimedOut("reserve~compensate");
  expectRun(run).not.toHaveTimedOut("reserve");
});

test("a failure shows what was found, and the timeline", () => {
  const { pass, message } = matchers.toHaveCompleted(failed);
  assert.equal(pass, false);
  assert.deepEqual(message().split("\n"), [
    "expected the run to have completed; it is failed, gate_timeout: nobody decided in time",
    "",
    "order, limit 1h0m0s: failed after 5m6s: gate_timeout, nobody decided in time",
    "    0s  reserve       completed  2s",
    "          0s POST http://service/: answered after 2s",
    "    2s  ask           timed out  5m0s of 5m0s  no decision in time, gate_timeout",
    "  5m2s  undo reserve  completed  2s",
    "          5m2s POST http://service/: answered after 2s",
    "  5m4s  on_end        completed  2s",
    "          5m4s POST http://service/: answered after 2s",
    "",
  ]);
});

test("the timeline of an open run ends with what it waits for", () => {
  assert.match(asking.timeline(), /^order, limit 1h0m0s: waiting at 1m0s\n/);
  assert.match(asking.timeline(), /\n  waits for a decision at ask \(approve, reject\), until 5m2s$/);
  assert.match(shipping.timeline(), /\n  waits for a signal "shipped" at ship$/);
  assert.match(begun.timeline(), /\n        0s POST http:\/\/service\/: no answer yet\n  waits for a call at reserve$/);
});

test("the timeline says how often something was tried, and shows the runs that were called", () => {
  const child = { id: "child", actions: workflow.actions, nodes: [{ id: "work", action_id: "call" }] } as const;
  const parent = { id: "parent", timeout: "1h", nodes: [{ id: "run", workflow_id: "child" }] } as const;
  const fails = Array.from({ length: 3 }, () => ({ node: "work", times: 1, fail: "server_error" }) as const);
  const run = curfewTest({ workflow: parent, documents: { workflows: [child] } }).mock(...fails, { action: "call", result: {} }).start().finish();
  assert.match(run.timeline(), /\nchild, limit .*: completed after/);
  assert.equal(run.timeline().match(/: failed, server_error, after 0s\n/g)!.length, 3);
});

test("the timeline has all of the error of a run, and shows where it cuts a request", () => {
  const message = `refused: ${"the card is blocked, ".repeat(20)}ask the bank`;
  const long = { ...workflow, actions: [{ id: "call", kind: "http_request", implementation: { url: `https://x.example/${"a".repeat(200)}` } }] } as const;
  const run = curfewTest({ workflow: long }).mock({ action: "call", fail: { class: "permanent", message } }).start().finish();
  assert.ok(run.timeline().split("\n")[0]!.endsWith(`, ${message}`), run.timeline());
  assert.match(run.timeline(), /GET https:\/\/x\.example\/a{98}\.\.\.: failed/);
});

test("a loop of a thousand visits has a timeline that can be read", () => {
  const loop = {
    id: "loop",
    timeout: "1h",
    nodes: [{ id: "begin", output_mapping: { "state.n": 0 } }, { id: "again", output_mapping: { "state.n": "${state.n + 1}" } }, { id: "end" }],
    transitions: [
      { from_node_id: "begin", to_node_id: "again" },
      { from_node_id: "again", to_node_id: "again", condition: "state.n < 1000", loop_config: { max_iterations: 1000 } },
      { from_node_id: "again", to_node_id: "end", priority: 1 },
    ],
  };
  const run = curfewTest({ workflow: loop }).start().finish();
  expectRun(run).toHaveCompleted();
  const lines = run.timeline().split("\n");
  assert.equal(lines.length, 201);
  assert.equal(lines.at(-1), `... and ${run.tokens.length + 1 - 200} more lines`);
});

test("what is no run is refused", () => {
  assert.throws(() => matchers.toHaveCompleted({ status: "completed" }), /looks at a run, as `start` returns it, not at \{ status: 'completed' \}/);
});

test("a name that the workflow does not have is an error, also where it is denied", () => {
  const wrong: [name: keyof typeof matchers, args: unknown[], message: RegExp][] = [
    ["toHaveCalled", ["resrve"], /^workflow "order" has no place for calls "resrve"; did you mean "reserve"\? Known are: reserve, ask, ship, reserve~compensate, on_end~1, on_end~2$/],
    ["toHaveCalled", ["ask~compensate"], /has no place for calls "ask~compensate"/],
    ["toHaveCalled", ["on_end~3"], /has no place for calls "on_end~3"/],
    ["toHaveTimedOut", ["asks"], /has no node "asks"; did you mean "ask"\? Known are: reserve, ask, ship, reserve~compensate$/],
    ["toHaveVisited", [["reserve", "shipped"]], /has no node "shipped"/],
    ["toHaveCompensated", [["ask"]], /has no compensation of a node "ask"\. Known are: reserve$/],
    ["toWaitFor", ["shiped"], /has no gate and no signal "shiped"; did you mean "shipped"\? Known are: reserve, ask, ship, timeout, shipped$/],
    ["toHaveStatus", ["complete"], /no run is "complete"; did you mean "completed"\?/],
  ];
  for (const [name, args, message] of wrong) {
    for (const expectation of [expectRun(asking), expectRun(asking).not]) assert.throws(() => (expectation[name] as any)(...args), { name: "UnknownName", message });
    assert.throws(() => (matchers[name] as any)(asking, ...args), { name: "UnknownName" });
  }
  assert.throws(() => asking.callsOf("resrve" as "reserve"), { name: "UnknownName", message: /did you mean "reserve"/ });
});

test("nodes of called workflows are known, but the path of a run is its own", () => {
  const child = { id: "child", actions: workflow.actions, nodes: [{ id: "work", action_id: "call" }, { id: "review", gate: {} }], transitions: [{ from_node_id: "work", to_node_id: "review" }] } as const;
  const parent = { id: "parent", timeout: "1h", nodes: [{ id: "call", workflow_id: "child" }] } as const;
  const run = curfewTest({ workflow: parent, documents: { workflows: [child] } }).mock({ node: "work", result: {} }).start();
  expectRun(run).toHaveCalled("work", 1);
  expectRun(run).toWaitFor("review");
  assert.throws(() => expectRun(run).not.toHaveVisited(["work"]), /workflow "parent" has no node "work"; it is a node of "child", whose runs are in run.children/);
});
