// Runs whose rows an older build wrote continue under this build, in the real database: the rows are migrated when the run is
// loaded. tests/golden/older has the rows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { root, startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
before(async () => {
  // PEER is the host that their tasks call.
  curfew = await startCurfew({ entry: "tests/workerd/workers/older-rows.mjs", services: { PEER: "echo" } });
});
after(() => curfew.dispose());

type Rows = { now: number; run: [string, string][]; tokens: [number, string, string][] };

/** Writes a run of an older build to an object, as if it had been saved just now, and returns its id. */
async function restoreOlder(name: string): Promise<string> {
  const text = readFileSync(join(root, "tests/golden/older", `${name}.json`), "utf8");
  const { now, run, tokens }: Rows = JSON.parse(text);
  const id = `older-${name}`;
  const later = (row: string): string =>
    row
      .replace(/"(\w+_at|told_deadline)":(\d+)/g, (_, field, at) => `"${field}":${Number(at) + Date.now() - now}`)
      .replaceAll('"run-1"', `"${id}"`)
      .replaceAll('"run-1.', `"${id}.`);
  const body = { run: run.map(([key, value]) => [key, later(value)]), tokens: tokens.map(([n, status, row]) => [n, status, later(row)]) };
  const answer = await curfew.api("POST", `/older/${id}`, body);
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(await tablesOf(id), ["run", "tokens"]);
  return id;
}

async function tablesOf(id: string): Promise<string[]> {
  const { json } = await curfew.api("POST", `/tables/${id}`, {});
  return json.map(({ name }: { name: string }) => name).sort();
}

for (const build of ["build1", "build2"]) {
  test(`${build}: a chain continues, in one table`, async () => {
    const id = await restoreOlder(`${build}_chain`);
    const run = await curfew.ended(id);
    assert.equal(run.status, "completed");
    // The result of the first node, written by the older build.
    assert.deepEqual(run.output, { from: 1 });
    assert.deepEqual(
      (await curfew.tokens(id)).map(({ id: token, node_id, status }) => [token, node_id, status]),
      [
        ["t1", "a", "completed"],
        ["t2", "b", "completed"],
        ["t3", "c", "completed"],
      ],
    );
    assert.deepEqual(await tablesOf(id), ["run"]);
  });

  test(`${build}: arrived and running branches are joined`, async () => {
    const run = await curfew.ended(await restoreOlder(`${build}_fan`));
    assert.equal(run.status, "completed");
    const all = (run.output as { all: unknown[] }).all;
    assert.equal(all.length, 3);
    assert.deepEqual(all[1], { n: 3 });
  });

  test(`${build}: an open gate can be decided`, async () => {
    const id = await restoreOlder(`${build}_gate`);
    const decided = await curfew.api("POST", `/v1/runs/${id}/gates/g1`, { choice: "yes" });
    assert.equal(decided.status, 200, decided.text);
    assert.equal((await curfew.ended(id)).status, "completed");
  });
}

// The first build stored no event for a pause.
test("events keep their numbers, and new events continue them", async () => {
  const id = await restoreOlder("build2_paused");
  assert.deepEqual((await curfew.events(id)).map(({ seq, kind }) => [seq, kind]), [[1, "run_paused"]]);
  const resumed = await curfew.api("POST", `/v1/runs/${id}/resume`, {});
  assert.equal(resumed.status, 200, resumed.text);
  assert.equal((await curfew.ended(id)).status, "completed");
  const events = (await curfew.events(id)).map(({ seq, kind }) => [seq, kind]);
  assert.deepEqual(events.slice(0, 2), [
    [1, "run_paused"],
    [2, "run_resumed"],
  ]);
});

test("a run with a child continues with the child's id", async () => {
  const id = await restoreOlder("build2_child");
  const child = `${id}.t1`;
  assert.equal((await curfew.run(id)).status, "running");
  await until("the child to wait", async () => (await curfew.api("GET", `/v1/runs/${child}`)).json?.status === "waiting");
  // Paused and resumed with its parent.
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/pause`, {})).status, 200);
  await until("the child to be paused", async () => (await curfew.run(child)).status === "paused");
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/resume`, {})).status, 200);
  await until("the child to continue", async () => (await curfew.run(child)).status === "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${child}/signals/go`, { n: 7 })).status, 200);
  const run = await curfew.ended(id);
  assert.deepEqual([run.status, run.output], ["completed", { n: 7 }]);
});
