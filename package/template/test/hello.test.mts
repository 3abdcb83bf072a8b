// The workflow in virtual time: no server runs, and five minutes take no time. `curfew/testing` has no network and no clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { curfewTest, expectRun } from "curfew/testing";
import hello from "../workflows/hello.mts";

const greeting = curfewTest({ workflow: hello });

test("greets at once", () => {
  expectRun(greeting.start({ name: "Ada" })).toHaveCompleted({ greeting: "Hello, Ada!" });
});

test("asks a person, who declines", () => {
  const run = greeting.start({ name: "Bob", ask: true });
  expectRun(run).toWaitFor("ask");
  expectRun(run.advance("4m").decide("ask", "stay-silent")).toHaveCompleted({ greeting: null });
});

test("fails when nobody answers for five minutes", () => {
  const run = greeting.start({ name: "Bob", ask: true }).advance("5m");
  expectRun(run).toHaveTimedOut("ask");
  expectRun(run).toHaveFailed("gate_timeout");
});

test("greets whatever goes wrong around it", () => {
  const { statuses } = greeting.people({ gate: "ask", after: "1m", choice: "greet" }).everySeed(50, { input: { name: "Ada", ask: true } });
  assert.deepEqual(statuses, { completed: 50 });
});
