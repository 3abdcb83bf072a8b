// One budget of computation for a decision: a run that computes much does not keep the others waiting.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, set, workflow, type WorkflowDocument } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";

let curfew: Curfew;
before(async () => {
  curfew = await startCurfew();
});
after(() => curfew.dispose());

/** Nodes one after the other that run the task `step`. */
function chain(count: number, task: Record<string, unknown>): WorkflowDocument {
  const ids = Array.from({ length: count }, (_, index) => `n${index}`);
  return workflow({
    nodes: ids.map((id) => ({ id, task_id: "step", output_mapping: {} })),
    transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
    tasks: [{ id: "step", ...task }],
  });
}

const paths = (count: number, value: string) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, value]));

/** How long the others wait at most while `busy` is under way. */
async function longestWait(busy: Promise<unknown>, other: () => Promise<unknown>): Promise<{ longest: number; asked: number }> {
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

// The wasm of the tests may be a development build, which takes some thirty times as long as what is deployed: the budget is
// counted in steps, so that what holds here is that nobody waits for a whole run, only for a turn of it.
const TURN_MS = 5_000;

const expensive = "${input.list.map(a, input.list.exists(b, a + b > 1000)).size()}";
const list = Array.from({ length: 120 }, (_, index) => index);

test("ten inline nodes of 400 expensive paths fail at the first, and say why", async () => {
  const document = chain(10, { steps: [set(paths(400, expensive))] });
  await curfew.store(document);
  const id = await curfew.start(document.id, { list });
  const busy = curfew.ended(id, 60_000);
  const { longest, asked } = await longestWait(busy, () => curfew.api("GET", "/healthz"));
  const run = await busy;
  assert.equal(run.status, "failed");
  assert.equal(run.error?.code, "limit_exceeded");
  assert.equal(run.error?.class, "validation");
  assert.match(run.error?.message ?? "", /set of step .*too much computation for one token: more than \d+ steps/);
  assert.ok(longest < TURN_MS, `${longest} ms at most, asked ${asked} times`);
});

test("a chain that computes more than one decision may goes on in further turns, and others are served between them", async () => {
  const document = chain(30, { steps: [set(paths(4, expensive))] });
  const small = workflow({ nodes: [{ id: "a" }] });
  await curfew.store(document);
  await curfew.store(small);
  const id = await curfew.start(document.id, { list });
  const busy = curfew.ended(id, 120_000);
  const { longest, asked } = await longestWait(busy, () => curfew.api("POST", `/v1/workflows/${small.id}/runs?wait_ms=20000`, { input: {} }));
  const run = await busy;
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal((await curfew.tokens(id)).length, 30);
  assert.ok(longest < TURN_MS, `${longest} ms at most, ${asked} other runs`);
  assert.ok(asked > 1, "other runs ended meanwhile");
});

test("eight schema checks of a dense pattern are stopped at the first", async () => {
  const schema = { properties: { words: { items: { pattern: "(a|aa|aaa|b)*$" } } } };
  const document = chain(8, { input_schema: schema, steps: [set({ ok: true })] });
  await curfew.store(document);
  const id = await curfew.start(document.id, { words: Array.from({ length: 900 }, () => "a".repeat(900)) });
  const busy = curfew.ended(id, 60_000);
  const { longest, asked } = await longestWait(busy, () => curfew.api("GET", "/healthz"));
  const run = await busy;
  assert.equal(run.error?.code, "limit_exceeded");
  assert.match(run.error?.message ?? "", /input_schema of the task, at "": schema too expensive to check: .* \d+ steps; use fewer/);
  assert.ok(longest < TURN_MS, `${longest} ms at most, asked ${asked} times`);
});

test("the check of an input at its start has the same bound", async () => {
  const document = workflow({ nodes: [{ id: "a" }], input_schema: { properties: { text: { pattern: "(a|aa|aaa|b)*$" } } } });
  await curfew.store(document);
  const runs = `/v1/workflows/${document.id}/runs?wait_ms=20000`;
  const refused = await curfew.api("POST", runs, { run_id: freshId("r"), input: { text: "a".repeat(900_000) } });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /schema too expensive to check/);
  const taken = await curfew.api("POST", runs, { run_id: freshId("r"), input: { text: "a".repeat(10_000) } });
  assert.equal(taken.json.status, "completed", taken.text);
});
