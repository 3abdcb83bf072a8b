// The clocks of parents and children: they stand still together, a child in front of a person tells its parent, a node's
// limit is the child's, and a budget is shared for as long as its parent has it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { freshId, oneRequest, workflow, type WorkflowDocument } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { GateView, RunView } from "./wire.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew({ vars: { CURFEW_RETRY_DELAY_MS: "50" } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** One request; its limit, if it passes, is a question to a person. */
const asking = (more: object = {}) => oneRequest("${input.url}", { workflow: { on_timeout: undefined, output_mapping: "${state.work.status}", ...more } });

const calling = (child: WorkflowDocument, more: { node?: object; workflow?: object } = {}): WorkflowDocument =>
  workflow({
    on_timeout: undefined,
    nodes: [{ id: "call", workflow_id: child.id, ...more.node }, { id: "late" }],
    transitions: [{ from_node_id: "call", to_node_id: "late", on: "timeout" }],
    output_mapping: "${has(state.call) ? state.call : null}",
    ...more.workflow,
  });

/** Stores children first, and starts a run of the last. */
async function started(documents: WorkflowDocument[], path: string, at: Curfew = curfew): Promise<string> {
  for (const document of documents) await at.store(document);
  return at.start(documents.at(-1)!.id, { url: peer.url + path });
}

const childOf = (runId: string) => `${runId}~t1`;
const reached = (path: string, times = 1) => until("the peer to be asked", () => peer.seen(path).length === times);
const aborted = (path: string) => until(`the connection to ${path} to be closed`, () => peer.seen(path)[0]?.aborted === true);

async function control(runId: string, name: string, body?: unknown, at: Curfew = curfew): Promise<RunView> {
  const answer = await at.api("POST", `/v1/runs/${runId}/${name}`, body);
  assert.equal(answer.status, 200, `${name}: ${answer.text}`);
  return answer.json;
}

/** The run once it is as the test wants it. */
const run = (runId: string, what: string, wanted: (run: RunView) => boolean, at: Curfew = curfew): Promise<RunView> =>
  until(`${runId} to ${what}`, async () => {
    const run = await at.run(runId);
    return wanted(run) && run;
  });
const stopped = (runId: string, by: string, at?: Curfew) =>
  run(runId, `be held by ${by}`, ({ status, paused_by }) => status === "paused" && paused_by?.length === 1 && paused_by[0] === by, at);
const going = (runId: string) => run(runId, "go on", ({ status }) => status === "running");

function assertCompleted(run: RunView): void {
  assert.equal(run.status, "completed", JSON.stringify(run.error));
}

describe("parents and children", { concurrency: 6 }, () => {
  test("pausing a run pauses what it called, however deep, and all go on together", async () => {
    const key = freshId("k");
    const child = asking({ timeout: "4s" });
    const middle = calling(child);
    const id = await started([child, middle, calling(middle)], `/held/${key}`);
    await reached(`/held/${key}`);
    const leaf = childOf(childOf(id));
    await control(id, "pause");
    const [, held] = await Promise.all([stopped(childOf(id), "parent"), stopped(leaf, "parent")]);
    const limit = held.deadlines.find(({ kind }) => kind === "workflow");
    assert.ok((limit?.remaining_ms ?? 0) > 0 && limit?.due_at === undefined, JSON.stringify(held.deadlines));
    const alone = await curfew.api("POST", `/v1/runs/${leaf}/resume`);
    assert.deepEqual([alone.status, alone.json.error.code], [409, "paused_by_parent"], alone.text);
    await until("the limit to pass by the clock on the wall", () => Date.now() > (held.timeout_at ?? 0) + 200);
    assert.equal((await curfew.run(leaf)).status, "paused");
    await control(id, "resume");
    const resumed = await going(leaf);
    assert.ok((resumed.timeout_at ?? 0) > Date.now());
    peer.release(key);
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(`/held/${key}`).length, 1);
  });

  test("a child that was paused by itself as well stays so when its parent goes on", async () => {
    const key = freshId("k");
    const child = asking();
    const id = await started([child, calling(child)], `/held/${key}`);
    await reached(`/held/${key}`);
    await control(childOf(id), "pause");
    await control(id, "pause");
    await run(childOf(id), "be held by both", ({ paused_by }) => paused_by?.length === 2);
    await control(id, "resume");
    await stopped(childOf(id), "person");
    peer.release(key);
    await control(childOf(id), "resume");
    assertCompleted(await curfew.ended(id));
  });

  test("a child at its gate tells its parent; extended, both complete", async () => {
    const key = freshId("k");
    const child = asking({ timeout: "700ms" });
    const id = await started([child, calling(child)], `/held/${key}`);
    const told = await until("the parent to be told", async () => (await curfew.events(id, "subworkflow_paused"))[0]);
    assert.deepEqual([told["token_id"], told["child_run_id"]], ["t1", childOf(id)]);
    assert.equal((await curfew.run(id)).status, "running");
    assert.deepEqual((await curfew.tokens(id)).map(({ status, reason }) => [status, reason]), [["waiting_for_subworkflow", "child_paused"]]);
    const gate = await until("the gate in the list", async () => {
      const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
      return json.items.find(({ run_id }: GateView) => run_id === childOf(id)) as GateView | undefined;
    });
    await control(childOf(id), `gates/${gate.id}`, { choice: "extend", input: { by_ms: 20_000 } });
    await until("the parent to be told again", async () => (await curfew.events(id, "subworkflow_resumed"))[0]);
    assert.equal((await curfew.tokens(id))[0]?.reason, null);
    peer.release(key);
    const ended = await curfew.ended(id);
    assertCompleted(ended);
    assert.equal(ended.output, 200);
  });

  test("a child that is aborted at its gate takes its parent's timeout route", async () => {
    const path = `/hang/${freshId("h")}`;
    const child = asking({ timeout: "600ms" });
    const id = await started([child, calling(child)], path);
    await stopped(childOf(id), "workflow_timeout");
    await control(childOf(id), "gates/run1", { choice: "abort" });
    assertCompleted(await curfew.ended(id));
    assert.deepEqual((await curfew.tokens(id)).map(({ node_id, status }) => [node_id, status]), [["call", "timed_out"], ["late", "completed"]]);
    await aborted(path);
  });

  test("a node's limit is its child's: no gate, the child times out, the parent takes its timeout route", async () => {
    const path = `/hang/${freshId("h")}`;
    const child = asking();
    const id = await started([child, calling(child, { node: { timeout: "700ms" } })], path);
    const ended = await curfew.ended(id);
    assertCompleted(ended);
    const own = await curfew.ended(childOf(id));
    assert.deepEqual([own.status, own.timeout_ms, own.gate], ["timed_out", 700, undefined]);
    const [call, late] = await curfew.tokens(id);
    assert.deepEqual([call?.status, call?.error?.message, late?.node_id], ["timed_out", "step call timed out: context deadline exceeded", "late"]);
    const [record] = (await curfew.api("GET", `/v1/runs/${id}/timeouts`)).json.items;
    assert.deepEqual([record.timeout_event.timeout_ms, record.last_known_state.node_id, record.final_action], [700, "call", "fail"]);
    await aborted(path);
  });

  test("a node that retries on time-out has another child for each attempt", async () => {
    const path = `/hang-first/${freshId("k")}/1`;
    const child = asking();
    const id = await started([child, calling(child, { node: { timeout: "1.5s", on_timeout: "retry" } })], path);
    const ended = await curfew.ended(id);
    assertCompleted(ended);
    assert.equal(ended.output, 200);
    assert.equal((await curfew.run(childOf(id))).status, "timed_out");
    assert.equal((await curfew.run(`${childOf(id)}~2`)).status, "completed");
  });

  test("a budget is the rest of the parent's: at the limit both wait for one decision, and are extended together", async () => {
    const key = freshId("k");
    const child = asking();
    const parent = calling(child, { workflow: { timeout: "2.5s", timeouts: { inherit_budget: true } } });
    const id = await started([child, parent], `/held/${key}`);
    await reached(`/held/${key}`);
    const own = await curfew.run(childOf(id));
    assert.ok((own.timeout_ms ?? 0) <= 2_500, `the child may take ${own.timeout_ms} ms`);
    await Promise.all([stopped(id, "workflow_timeout"), stopped(childOf(id), "parent")]);
    assert.equal((await curfew.run(childOf(id))).gate, undefined, "one question, not two");
    await control(id, "extend", { by: "20s" });
    const extended = await going(childOf(id));
    const left = (extended.timeout_at ?? 0) - Date.now();
    assert.ok(left > 15_000 && left <= 20_500, `${left} ms are left`);
    peer.release(key);
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(`/held/${key}`).length, 1);
  });

  test("a parent that is extended while it runs shares the new time", async () => {
    const key = freshId("k");
    const child = asking();
    const parent = calling(child, { workflow: { timeout: "5s", timeouts: { inherit_budget: true } } });
    const id = await started([child, parent], `/held/${key}`);
    await reached(`/held/${key}`);
    await control(id, "extend", { by: "20s" });
    await run(childOf(id), "have more time", ({ timeout_ms }) => (timeout_ms ?? 0) > 20_000);
    peer.release(key);
    assertCompleted(await curfew.ended(id));
  });

  test("without a budget a child has its own time, and a parent at its gate holds it", async () => {
    const path = `/hang/${freshId("h")}`;
    const child = asking();
    const id = await started([child, calling(child, { workflow: { timeout: "700ms" } })], path);
    await reached(path);
    assert.equal((await curfew.run(childOf(id))).timeout_ms, 30_000);
    await Promise.all([stopped(id, "workflow_timeout"), stopped(childOf(id), "parent")]);
    await control(id, "gates/run1", { choice: "abort" });
    assert.equal((await curfew.ended(id)).status, "timed_out");
    assert.equal((await curfew.ended(childOf(id))).status, "cancelled");
    await aborted(path);
  });

  test("a parent that goes on after its end has another child do the work", async () => {
    const path = `/flaky/${freshId("f")}/1/500`;
    const child = asking();
    const id = await started([child, calling(child)], path);
    assert.equal((await curfew.ended(id)).status, "failed");
    await control(id, "retry", { mode: "retry_step" });
    assertCompleted(await curfew.ended(id));
    assert.equal((await curfew.run(childOf(id))).status, "failed", "what ended stays ended");
    assert.equal((await curfew.run(`${id}~t2`)).status, "completed");
  });

  test("a child that is brought back by itself does not disturb the parent that gave it up", async () => {
    const path = `/flaky/${freshId("f")}/1/500`;
    const child = asking();
    const id = await started([child, calling(child)], path);
    assert.equal((await curfew.ended(id)).status, "failed");
    await control(childOf(id), "retry", { mode: "retry_step" });
    assertCompleted(await curfew.ended(childOf(id)));
    assert.equal((await curfew.run(id)).status, "failed");
  });

  test("parent and child at a gate survive the process and go on", async () => {
    const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
    try {
      const path = `/hang-first/${freshId("k")}/1`;
      const child = asking();
      let life = await startCurfew({ persistTo: directory });
      const id = await started([child, calling(child, { workflow: { timeout: "700ms" } })], path, life);
      await Promise.all([stopped(id, "workflow_timeout", life), stopped(childOf(id), "parent", life)]);
      await life.dispose();
      life = await startCurfew({ persistTo: directory });
      await control(id, "extend", { by: "20s" }, life);
      const ended = await life.ended(id);
      assertCompleted(ended);
      assert.deepEqual([ended.output, peer.seen(path).length], [200, 2]);
      await life.dispose();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
