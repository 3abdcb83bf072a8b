// Deadlines of parents and children: they are paused together, a child at a gate pauses its parent, a node's timeout limits the
// child, and a budget is shared with the parent.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { callWorkflow, childRunId, freshId, oneRequest, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { GateView, RunView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew({ vars: { CURFEW_RETRY_DELAY_MS: "50" } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** One request; at its deadline a gate opens. */
const requesting = (more: object = {}) => oneRequest("${input.url}", { workflow: { on_timeout: undefined, output_mapping: "${state.work.status}", ...more } });

/** A caller with a timeout route. */
const callingWithRoute = (child: WorkflowDocument, more: { node?: object; workflow?: object } = {}): WorkflowDocument =>
  callWorkflow(child, {
    workflow: {
      on_timeout: undefined,
      nodes: [{ id: "call", workflow_id: child.id, ...more.node }, { id: "late" }],
      transitions: [{ from_node_id: "call", to_node_id: "late", on: "timeout" }],
      output_mapping: "${has(state.call) ? state.call : null}",
      ...more.workflow,
    },
  });

/** Stores the workflows, children first, and starts a run of the last that requests `path`. */
const startRequest = (documents: WorkflowDocument[], path: string, at: Curfew = curfew): Promise<string> =>
  at.storeAndStart(documents, { url: peer.url + path });

const reached = (path: string, times = 1) => until("the request at the peer", () => peer.seen(path).length === times);
const aborted = (path: string) => until(`the connection to ${path} to be closed`, () => peer.seen(path)[0]?.aborted === true);

async function control(runId: string, name: string, body?: unknown, at: Curfew = curfew): Promise<RunView> {
  const response = await at.api("POST", `/v1/runs/${runId}/${name}`, body);
  assert.equal(response.status, 200, `${name}: ${response.text}`);
  return response.json;
}

/** Waits until `wanted` holds for the run. */
const runUntil = (runId: string, what: string, wanted: (run: RunView) => boolean, at: Curfew = curfew): Promise<RunView> =>
  until(`${runId} to ${what}`, async () => {
    const run = await at.run(runId);
    return wanted(run) && run;
  });
const pausedBy = (runId: string, by: string, at?: Curfew) =>
  runUntil(runId, `be paused by ${by}`, ({ status, paused_by }) => status === "paused" && paused_by?.length === 1 && paused_by[0] === by, at);
const running = (runId: string) => runUntil(runId, "continue", ({ status }) => status === "running");

describe("parents and children", { concurrency: 6 }, () => {
  test("pausing a run pauses all its descendants, and all resume together", async () => {
    const key = freshId("k");
    const child = requesting({ timeout: "4s" });
    const middle = callingWithRoute(child);
    const id = await startRequest([child, middle, callingWithRoute(middle)], `/held/${key}`);
    await reached(`/held/${key}`);
    const leaf = childRunId(childRunId(id));
    await control(id, "pause");
    const [, held] = await Promise.all([pausedBy(childRunId(id), "parent"), pausedBy(leaf, "parent")]);
    const limit = held.deadlines.find(({ kind }) => kind === "workflow");
    assert.ok((limit?.remaining_ms ?? 0) > 0 && limit?.due_at === undefined, JSON.stringify(held.deadlines));
    const alone = await curfew.api("POST", `/v1/runs/${leaf}/resume`);
    assert.deepEqual([alone.status, alone.json.error.code], [409, "paused_by_parent"], alone.text);
    await until("the wall clock to pass the deadline", () => Date.now() > (held.timeout_at ?? 0) + 200);
    assert.equal((await curfew.run(leaf)).status, "paused");
    await control(id, "resume");
    const resumed = await running(leaf);
    assert.ok((resumed.timeout_at ?? 0) > Date.now());
    peer.release(key);
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(`/held/${key}`).length, 1);
  });

  test("a child that was also paused itself stays paused when its parent resumes", async () => {
    const key = freshId("k");
    const child = requesting();
    const id = await startRequest([child, callingWithRoute(child)], `/held/${key}`);
    await reached(`/held/${key}`);
    await control(childRunId(id), "pause");
    await control(id, "pause");
    await runUntil(childRunId(id), "be paused by both", ({ paused_by }) => paused_by?.length === 2);
    await control(id, "resume");
    await pausedBy(childRunId(id), "person");
    peer.release(key);
    await control(childRunId(id), "resume");
    assertCompleted(await curfew.ended(id));
  });

  test("a child at its gate stops its parent's clock; extended, both complete", async () => {
    const key = freshId("k");
    const child = requesting({ timeout: "700ms" });
    const id = await startRequest([child, callingWithRoute(child, { workflow: { timeout: "3s" } })], `/held/${key}`);
    const notified = await until("the parent to be notified", async () => (await curfew.events(id, "subworkflow_paused"))[0]);
    assert.deepEqual([notified["token_id"], notified["child_run_id"]], ["t1", childRunId(id)]);
    const stopped = await runUntil(id, "outlive its limit", ({ duration_ms }) => (duration_ms ?? 0) > 3_500);
    assert.deepEqual([stopped.status, stopped.timeout_at], ["waiting", null]);
    assert.deepEqual((await curfew.tokens(id)).map(({ status, reason }) => [status, reason]), [["waiting_for_subworkflow", "child_paused"]]);
    const gate = await until("the gate in the list", async () => {
      const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
      return json.items.find(({ run_id }: GateView) => run_id === childRunId(id)) as GateView | undefined;
    });
    await control(childRunId(id), `gates/${gate.id}`, { choice: "extend", input: { by_ms: 20_000 } });
    await until("the second notification of the parent", async () => (await curfew.events(id, "subworkflow_resumed"))[0]);
    assert.equal((await curfew.tokens(id))[0]?.reason, null);
    peer.release(key);
    const ended = await curfew.ended(id);
    assertCompleted(ended);
    assert.equal(ended.output, 200);
  });

  test("a child that is aborted at its gate takes its parent's timeout route", async () => {
    const path = `/hang/${freshId("h")}`;
    const child = requesting({ timeout: "600ms" });
    const id = await startRequest([child, callingWithRoute(child)], path);
    await pausedBy(childRunId(id), "workflow_timeout");
    await control(childRunId(id), "gates/run1", { choice: "abort" });
    assertCompleted(await curfew.ended(id));
    assert.deepEqual((await curfew.tokens(id)).map(({ node_id, status }) => [node_id, status]), [["call", "timed_out"], ["late", "completed"]]);
    await aborted(path);
  });

  test("a node's timeout limits its child: no gate, the child times out, the parent takes its timeout route", async () => {
    const path = `/hang/${freshId("h")}`;
    const child = requesting();
    const id = await startRequest([child, callingWithRoute(child, { node: { timeout: "700ms" } })], path);
    const ended = await curfew.ended(id);
    assertCompleted(ended);
    const own = await curfew.ended(childRunId(id));
    assert.deepEqual([own.status, own.timeout_ms, own.gate], ["timed_out", 700, undefined]);
    const [call, late] = await curfew.tokens(id);
    assert.deepEqual([call?.status, call?.error?.message, late?.node_id], ["timed_out", "step call timed out: context deadline exceeded", "late"]);
    const [record] = (await curfew.api("GET", `/v1/runs/${id}/timeouts`)).json.items;
    assert.deepEqual([record.timeout_event.timeout_ms, record.last_known_state.node_id, record.final_action], [700, "call", "fail"]);
    await aborted(path);
  });

  test("a node that retries on timeout starts another child for each attempt", async () => {
    const path = `/hang-first/${freshId("k")}/1`;
    const child = requesting();
    const id = await startRequest([child, callingWithRoute(child, { node: { timeout: "1.5s", on_timeout: "retry" } })], path);
    const ended = await curfew.ended(id);
    assertCompleted(ended);
    assert.equal(ended.output, 200);
    assert.equal((await curfew.run(childRunId(id))).status, "timed_out");
    assert.equal((await curfew.run(`${childRunId(id)}~2`)).status, "completed");
  });

  test("a budget is the parent's remaining time: at the deadline both wait for one decision and are extended together", async () => {
    const key = freshId("k");
    const child = requesting();
    const parent = callingWithRoute(child, { workflow: { timeout: "2.5s", timeouts: { inherit_budget: true } } });
    const id = await startRequest([child, parent], `/held/${key}`);
    await reached(`/held/${key}`);
    const own = await curfew.run(childRunId(id));
    assert.ok((own.timeout_ms ?? 0) <= 2_500, `the child may take ${own.timeout_ms} ms`);
    await Promise.all([pausedBy(id, "workflow_timeout"), pausedBy(childRunId(id), "parent")]);
    assert.equal((await curfew.run(childRunId(id))).gate, undefined, "one gate, not two");
    await control(id, "extend", { by: "20s" });
    const extended = await running(childRunId(id));
    const left = (extended.timeout_at ?? 0) - Date.now();
    assert.ok(left > 15_000 && left <= 20_500, `${left} ms are left`);
    peer.release(key);
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(`/held/${key}`).length, 1);
  });

  test("extending a running parent extends the budget", async () => {
    const key = freshId("k");
    const child = requesting();
    const parent = callingWithRoute(child, { workflow: { timeout: "5s", timeouts: { inherit_budget: true } } });
    const id = await startRequest([child, parent], `/held/${key}`);
    await reached(`/held/${key}`);
    await control(id, "extend", { by: "20s" });
    await runUntil(childRunId(id), "have more time", ({ timeout_ms }) => (timeout_ms ?? 0) > 20_000);
    peer.release(key);
    assertCompleted(await curfew.ended(id));
  });

  test("without a budget a child has its own timeout, and a parent at its gate pauses it", async () => {
    const path = `/hang/${freshId("h")}`;
    const child = requesting();
    const id = await startRequest([child, callingWithRoute(child, { workflow: { timeout: "700ms" } })], path);
    await reached(path);
    assert.equal((await curfew.run(childRunId(id))).timeout_ms, 30_000);
    await Promise.all([pausedBy(id, "workflow_timeout"), pausedBy(childRunId(id), "parent")]);
    await control(id, "gates/run1", { choice: "abort" });
    assert.equal((await curfew.ended(id)).status, "timed_out");
    assert.equal((await curfew.ended(childRunId(id))).status, "cancelled");
    await aborted(path);
  });

  test("a resumed parent starts another child", async () => {
    const path = `/flaky/${freshId("f")}/1/500`;
    const child = requesting();
    const id = await startRequest([child, callingWithRoute(child)], path);
    assert.equal((await curfew.ended(id)).status, "failed");
    await control(id, "retry", { mode: "retry_step" });
    assertCompleted(await curfew.ended(id));
    assert.equal((await curfew.run(childRunId(id))).status, "failed", "an ended run does not change");
    assert.equal((await curfew.run(`${id}~t2`)).status, "completed");
  });

  test("a child that is resumed by itself does not affect the parent that has failed", async () => {
    const path = `/flaky/${freshId("f")}/1/500`;
    const child = requesting();
    const id = await startRequest([child, callingWithRoute(child)], path);
    assert.equal((await curfew.ended(id)).status, "failed");
    await control(childRunId(id), "retry", { mode: "retry_step" });
    assertCompleted(await curfew.ended(childRunId(id)));
    assert.equal((await curfew.run(id)).status, "failed");
  });

  test("parent and child at a gate survive a restart and continue", async () => {
    const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
    try {
      const path = `/hang-first/${freshId("k")}/1`;
      const child = requesting();
      let instance = await startCurfew({ persistTo: directory });
      const id = await startRequest([child, callingWithRoute(child, { workflow: { timeout: "700ms" } })], path, instance);
      await Promise.all([pausedBy(id, "workflow_timeout", instance), pausedBy(childRunId(id), "parent", instance)]);
      await instance.dispose();
      instance = await startCurfew({ persistTo: directory });
      await control(id, "extend", { by: "20s" }, instance);
      const ended = await instance.ended(id);
      assertCompleted(ended);
      assert.deepEqual([ended.output, peer.seen(path).length], [200, 2]);
      await instance.dispose();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
