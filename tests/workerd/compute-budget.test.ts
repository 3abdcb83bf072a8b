// The compute budget of a decision: an expensive run does not block the others.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chainOf, freshId, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
});
after(() => curfew.dispose());

const paths = (count: number, value: string) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, value]));

/** The longest response time of other requests while `busy` is running. */
async function longestResponse(busy: Promise<unknown>, other: () => Promise<unknown>): Promise<{ longest: number; asked: number }> {
  let isBusy = true;
  void busy.finally(() => (isBusy = false)).catch(() => {});
  let [longest, asked] = [0, 0];
  while (isBusy) {
    const began = performance.now();
    await other();
    longest = Math.max(longest, performance.now() - began);
    asked += 1;
  }
  return { longest, asked };
}

// The wasm of the tests may be a development build, about thirty times slower than the deployed one. The budget is counted in
// steps, so the test only shows that requests wait for one decision and not for the whole run.
const TURN_MS = 5_000;

const EXPENSIVE = "${input.list.map(a, input.list.exists(b, a + b > 1000)).size()}";
const LIST = Array.from({ length: 120 }, (_, index) => index);

test("ten inline nodes of 400 expensive paths fail at the first, with the reason", async () => {
  const document = chainOf(10, { steps: [set(paths(400, EXPENSIVE))] });
  await curfew.store(document);
  const id = await curfew.start(document.id, { list: LIST });
  const busy = curfew.ended(id, 60_000);
  const { longest, asked } = await longestResponse(busy, () => curfew.api("GET", "/healthz"));
  const run = await busy;
  assert.equal(run.status, "failed");
  assert.equal(run.error?.code, "limit_exceeded");
  assert.equal(run.error?.class, "validation");
  assert.match(run.error?.message ?? "", /set of step .*too much computation for one token: more than \d+ steps/);
  assert.ok(longest < TURN_MS, `${longest} ms at most, asked ${asked} times`);
});

test("a chain that exceeds the budget of one decision continues in further ones, and other requests are served in between", async () => {
  const document = chainOf(30, { steps: [set(paths(4, EXPENSIVE))] });
  const small = workflow({ nodes: [{ id: "a" }] });
  await curfew.store(document);
  await curfew.store(small);
  const id = await curfew.start(document.id, { list: LIST });
  const busy = curfew.ended(id, 120_000);
  const { longest, asked } = await longestResponse(busy, () => curfew.api("POST", `/v1/workflows/${small.id}/runs?wait_ms=20000`, { input: {} }));
  const run = await busy;
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal((await curfew.tokens(id)).length, 30);
  assert.ok(longest < TURN_MS, `${longest} ms at most, ${asked} other runs`);
  assert.ok(asked > 1, "other runs ended meanwhile");
});

test("eight schema checks of a dense pattern are stopped at the first", async () => {
  const schema = { properties: { words: { items: { pattern: "(a|aa|aaa|b)*$" } } } };
  const document = chainOf(8, { input_schema: schema, steps: [set({ ok: true })] });
  await curfew.store(document);
  const id = await curfew.start(document.id, { words: Array.from({ length: 900 }, () => "a".repeat(900)) });
  const busy = curfew.ended(id, 60_000);
  const { longest, asked } = await longestResponse(busy, () => curfew.api("GET", "/healthz"));
  const run = await busy;
  assert.equal(run.error?.code, "limit_exceeded");
  assert.match(run.error?.message ?? "", /input_schema of the task, at "": schema too expensive to check: .* \d+ steps; use fewer/);
  assert.ok(longest < TURN_MS, `${longest} ms at most, asked ${asked} times`);
});

test("the check of an input at the start has the same limit", async () => {
  const document = workflow({ nodes: [{ id: "a" }], input_schema: { properties: { text: { pattern: "(a|aa|aaa|b)*$" } } } });
  await curfew.store(document);
  const runs = `/v1/workflows/${document.id}/runs?wait_ms=20000`;
  const refused = await curfew.api("POST", runs, { run_id: freshId("r"), input: { text: "a".repeat(900_000) } });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /schema too expensive to check/);
  const taken = await curfew.api("POST", runs, { run_id: freshId("r"), input: { text: "a".repeat(10_000) } });
  assert.equal(taken.json.status, "completed", taken.text);
});
