// The names of a workflow, as the compiler knows them. The lines behind `@ts-expect-error` are the test of the compiler: `npm run check`
// fails if one of them has no error.
import assert from "node:assert/strict";
import { test } from "node:test";
import { defineWorkflow, stored, type components } from "../client/index.ts";
import { curfewTest, expectRun, type RunMatchers, type SeenRun, type TestRun, type Decision, type Kit, type Mock, type Signal, type StartOptions, type KitOptions } from "./index.ts";

const order = defineWorkflow({
  id: "order",
  timeout: "24h",
  nodes: [
    { id: "pay", action_id: "charge", compensate: { action_id: "charge" } },
    { id: "ask", gate: { choices: ["ship", "refund"] } },
    { id: "tell", action_id: stored("tell-customer") },
    { id: "wait", wait: { signal: "posted" } },
  ],
  transitions: [{ from_node_id: "pay", to_node_id: "ask" }, { from_node_id: "ask", to_node_id: "tell", condition: "state.ask.choice == 'ship'" }],
  actions: [{ id: "charge", kind: "service_call", implementation: { binding: "PAY" } }],
});
const tell = { id: "tell-customer", kind: "service_call", implementation: { binding: "MAIL" } };
const kit = curfewTest({ workflow: order, documents: { actions: [tell] } });

type Body = Required<components["schemas"]["SimulateBody"]>;
type Entry<Field extends "mocks" | "people" | "signals"> = NonNullable<Body[Field]>[number];
type KeysOf<Union> = Union extends unknown ? keyof Union : never;
type Same<Left, Right> = [Left, Right] extends [Right, Left] ? true : false;

test("the kit has every field of a simulation, and no other", () => {
  const mocks: Same<KeysOf<Mock>, keyof Entry<"mocks">> = true;
  const people: Same<KeysOf<Decision>, keyof Entry<"people">> = true;
  const signals: Same<KeysOf<Signal>, keyof Entry<"signals">> = true;
  // Time is the test's; a stored workflow has no place here; the input is the first argument of `start`.
  type Elsewhere = "until" | "workflow_id" | "version" | "timeout_ms" | "input";
  const body: Same<keyof KitOptions<object, object> | keyof StartOptions, Exclude<keyof Body, Elsewhere>> = true;
  assert.ok(mocks && people && signals && body);
});

test("a node, an action and a choice that the workflow does not have do not compile", () => {
  kit.mock({ node: "pay", result: {} }, { node: "pay~compensate", result: {} }, { action: "charge", hang: true }, { action: stored("tell-customer"), result: {} }, { node: "on_end~1", result: {} });
  // @ts-expect-error: no such node.
  kit.mock({ node: "pray", result: {} });
  // @ts-expect-error: no such action.
  kit.mock({ action: "change", result: {} });
  // @ts-expect-error: which calls?
  kit.mock({ result: {} });
  // @ts-expect-error: what is answered?
  kit.mock({ node: "pay" });
  // @ts-expect-error: one of both.
  kit.mock({ node: "pay", result: {}, hang: true });
  // @ts-expect-error: no such class.
  kit.mock({ node: "pay", fail: "bad_luck" });
  // @ts-expect-error: no such field.
  kit.mock({ node: "pay", result: {}, until: "1h" });

  kit.people({ gate: "ask", choice: "ship", after: "2d" }, { gate: "timeout", choice: "extend", input: { by_ms: 1 } });
  // @ts-expect-error: no such choice.
  kit.people({ gate: "ask", choice: "shop" });
  // @ts-expect-error: no such gate.
  kit.people({ gate: "task", choice: "ship" });

  const run = kit.mock({ node: "pay", result: {} }, { node: "tell", result: {} }).start();
  // @ts-expect-error: no such choice.
  assert.throws(() => run.decide("ask", "shop"));
  // @ts-expect-error: no such gate.
  assert.throws(() => run.decide("task", "ship"));
  assert.equal(run.decide("ask", "ship").status, "completed");
});

/** Never called: the compiler is what is tested. */
export function misspelt() {
  const run = kit.start();
  run.callsOf("pay~compensate");
  // @ts-expect-error
  run.callsOf("pya");
  run.until("ask").until("timeout").until("posted");
  // @ts-expect-error
  run.until("aks");
  kit.everySeed(1, {}, (run) => void run.callsOf("pay"));
  // @ts-expect-error
  kit.everySeed(1, {}, (run) => void run.callsOf("pya"));
  kit.everySeed(1, {}, (run) => expectRun(run).not.toHaveCalled("tell"));
  // @ts-expect-error
  kit.everySeed(1, {}, (run) => expectRun(run).not.toHaveCalled("tel"));
  const expected: Matchers<typeof run> = expectRun(run);
  for (const expectation of [expectRun(run), expectRun(run).not, expected]) {
    expectation.toHaveCalled("on_end~1");
    // @ts-expect-error
    expectation.toHaveCalled("pya");
    expectation.toHaveTimedOut("ask");
    // @ts-expect-error
    expectation.toHaveTimedOut("aks");
    expectation.toHaveVisited(["pay", "ask"]);
    // @ts-expect-error
    expectation.toHaveVisited(["pay", "aks"]);
    expectation.toHaveCompensated(["pay"]);
    // @ts-expect-error
    expectation.toHaveCompensated(["pya"]);
    expectation.toWaitFor("posted");
    // @ts-expect-error
    expectation.toWaitFor("psoted");
    // @ts-expect-error
    expectation.toHaveStatus("complete");
  }
  // A run of any workflow, and one that was read from a file.
  const any: TestRun = run;
  expectRun(any).toHaveCalled("whatever");
  const seen: SeenRun = run;
  expectRun(seen).not.toWaitFor("whatever");
  expectRun(curfewTest({ workflow: JSON.parse("{}") }).start()).toHaveVisited(["whatever"]);
  const typed: { id: string; nodes: { id: string; wait?: { signal?: string } }[] } = JSON.parse("{}");
  expectRun(curfewTest({ workflow: typed }).start()).toWaitFor("whatever");
  // A matcher says nothing about what is no run.
  const others: Matchers<number> = expectRun(any);
  others.toHaveCalled("whatever");
}

/** As Vitest has them: `T` is the type of what is looked at. */
interface Matchers<T = any> extends RunMatchers<T> {}

test("the ids in a document that is a constant are known, too", () => {
  const constant = curfewTest({ workflow: { id: "w", nodes: [{ id: "a", gate: { choices: ["x"] } }, { id: "b" }], transitions: [{ from_node_id: "a", to_node_id: "b" }] } });
  // @ts-expect-error: no such gate.
  constant.people({ gate: "c", choice: "x" });
  assert.equal(constant.people({ gate: "a", choice: "x" }).start().status, "completed");
});

test("names in a document that was read from a file are any text", () => {
  const text = JSON.stringify(order);
  const read = curfewTest({ workflow: JSON.parse(text), documents: { actions: [tell] } }).mock({ node: "pay", result: {} }, { action: "tell-customer", result: {} });
  assert.equal(read.start().decide("ask", "ship").status, "completed");
  const typed: { id: string; nodes: { id: string }[] } = JSON.parse(text);
  curfewTest({ workflow: typed }).mock({ node: "any", result: {} });
});

test("gates and nodes of called workflows are known", () => {
  const child = { id: "child", nodes: [{ id: "review", gate: { choices: ["fine"] } }] } as const;
  const parent = { id: "parent", nodes: [{ id: "call", workflow_id: "child" }] } as const;
  const both: Kit<typeof parent, typeof child> = curfewTest({ workflow: parent, documents: { workflows: [child] } });
  // @ts-expect-error: no such gate.
  both.people({ gate: "reviews", choice: "fine" });
  assert.equal(both.start().decide("review", "fine").finish().status, "completed");
});
