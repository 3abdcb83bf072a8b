// Pause and resume: deadlines stop, nothing new starts, no work is lost. Restart: the same run again.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, childRunId, fan, freshId, markAction, markNode, oneRequest, oneTask, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { RunView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const control = (runId: string, name: string, body?: unknown) => curfew.api("POST", `/v1/runs/${runId}/${name}`, body);

async function apply(runId: string, name: string): Promise<RunView> {
  const response = await control(runId, name);
  assert.equal(response.status, 200, response.text);
  return response.json;
}

const passed = (moment: number) => until("that time to pass", () => Date.now() > moment);

/** first -> second, each a request to a url of the input. */
const twoRequests = (more: Record<string, unknown> = {}) =>
  workflow({
    nodes: ["first", "second"].map((id) => ({ id, action_id: "ask", input_mapping: { url: `\${input.${id}}` }, ...more })),
    transitions: [{ from_node_id: "first", to_node_id: "second" }],
    actions: [ask],
    output_mapping: "${state.second.status}",
  });

test("a paused run shows remaining times, keeps work in flight, starts nothing new, and resumes", async () => {
  const [key, path] = [freshId("k"), `/ok/${freshId("p")}`];
  const document = twoRequests({ timeout: "20s" });
  await curfew.store(document);
  const id = await curfew.start(document.id, { first: `${peer.url}/held/${key}`, second: peer.url + path });
  await until("the request at the peer", () => peer.seen(`/held/${key}`).length === 1);
  const { timeout_at: timeoutAt } = await curfew.run(id);
  assert.ok(timeoutAt);

  const beforePause = Date.now();
  const paused = await apply(id, "pause");
  const afterPause = Date.now();
  assert.equal(paused.status, "paused");
  assert.deepEqual(paused.deadlines.map(({ kind }) => kind), ["workflow", "execution"]);
  for (const [deadline, most] of [[paused.deadlines[0], 30_000], [paused.deadlines[1], 20_000]] as const) {
    assert.equal(deadline?.due_at, undefined);
    const left = deadline?.remaining_ms ?? -1;
    assert.ok(left > most - 10_000 && left <= most, `${JSON.stringify(deadline)}`);
  }

  peer.release(key);
  await until("the result to be stored", async () => (await curfew.tokens(id))[0]?.status === "completed");
  const [, next] = await curfew.tokens(id);
  assert.deepEqual([next?.node_id, next?.status, next?.epoch], ["second", "pending", 0]);
  const standing = await curfew.run(id);
  assert.equal(standing.status, "paused");
  assert.equal(standing.context.state.first.status, 200);
  assert.equal(peer.seen(path).length, 0, "the next node was not begun");

  const beforeResume = Date.now();
  const resumed = await apply(id, "resume");
  const shift = (resumed.timeout_at ?? 0) - timeoutAt;
  assert.ok(shift >= beforeResume - afterPause && shift <= Date.now() - beforePause, `${shift} ms`);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, 200);
  assert.equal(peer.seen(path).length, 1);
});

test("neither a paused run nor its work times out, and both have their remaining time after the resume", async () => {
  const path = `/hang-first/${freshId("k")}/1`;
  const document = oneRequest("${input.url}", { node: { timeout: "1s" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: peer.url + path });
  await until("the request at the peer", () => peer.seen(path).length === 1);
  await apply(id, "pause");
  // The executor's own deadline cannot be paused; its timeout report must not end the run.
  await until("the executor to give up", () => peer.seen(path)[0]?.aborted === true);
  await until("the run to receive it", async () => (await curfew.tokens(id))[0]?.status === "pending");
  assert.equal((await curfew.run(id)).status, "paused");
  const resumed = await apply(id, "resume");
  assert.ok((resumed.timeout_at ?? 0) > Date.now(), "the deadline is in the future again");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output.body.count, 2);
});

test("a call of a paused run continues past the run's original deadline and is made once", async () => {
  const key = freshId("k");
  const document = oneRequest(`${peer.url}/held/${key}`, { workflow: { timeout: "2s" } });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await until("the request at the peer", () => peer.seen(`/held/${key}`).length === 1);
  const paused = await apply(id, "pause");
  await passed((paused.timeout_at ?? 0) + 1_000);
  assert.equal(peer.seen(`/held/${key}`)[0]?.closedAt, undefined, "it is still open");
  await apply(id, "resume");
  peer.release(key);
  assertCompleted(await curfew.ended(id));
  assert.equal(peer.seen(`/held/${key}`).length, 1);
});

test("a paused run survives a restart and deadlines that passed meanwhile", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
  try {
    const path = `/hang-first/${freshId("k")}/1`;
    const document = oneRequest("${input.url}", { node: { timeout: "2s" } });
    let life = await startCurfew({ persistTo: directory });
    await life.store(document);
    const id = await life.start(document.id, { url: peer.url + path });
    await until("the request at the peer", () => peer.seen(path).length === 1);
    const paused = await life.api("POST", `/v1/runs/${id}/pause`);
    assert.equal(paused.json.status, "paused", paused.text);
    const [token] = await life.tokens(id);
    await life.dispose();
    await passed(token?.timeout_at ?? 0);
    life = await startCurfew({ persistTo: directory });
    assert.equal((await life.run(id)).status, "paused");
    assert.equal((await life.api("POST", `/v1/runs/${id}/resume`)).status, 200);
    assertCompleted(await life.ended(id));
    await life.dispose();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("a sleep continues with its remaining time", async () => {
  const document = workflow({ nodes: [{ id: "rest", wait: { sleep: "900ms" } }, markNode("after")], actions: [markAction("after")] });
  document["transitions"] = [{ from_node_id: "rest", to_node_id: "after" }];
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const paused = await apply(id, "pause");
  const left = paused.deadlines.find(({ kind }) => kind === "wait")?.remaining_ms ?? -1;
  assert.ok(left > 0 && left <= 900, `${left}`);
  await passed(paused.started_at + 1_200);
  assert.equal((await curfew.tokens(id)).length, 1, "its time passed during the pause");
  const resumedAt = Date.now();
  await apply(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  const [token] = await curfew.tokens(id);
  assert.ok((token?.ended_at ?? 0) - resumedAt >= left - 50, "the rest of the sleep was slept");
});

test("the deadline of a join is paused, too", async () => {
  const key = freshId("k");
  const document = fan({ join: { timeout: "900ms" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: [`${peer.url}/ok?n=0`, `${peer.url}/held/${key}?n=1`] });
  await until("one to arrive", async () => (await curfew.run(id)).counts["waiting_for_siblings"] === 1);
  const paused = await apply(id, "pause");
  const left = paused.deadlines.find(({ kind }) => kind === "synchronization")?.remaining_ms ?? -1;
  assert.ok(left >= 0 && left <= 900, `${left}`);
  await passed(Date.now() + left + 200);
  assert.equal((await curfew.run(id)).status, "paused");
  peer.release(key);
  await until("the second to arrive", async () => (await curfew.run(id)).counts["executing"] === undefined);
  await apply(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["0", "1"]);
});

test("decisions and signals are accepted during a pause, and their effects wait", async () => {
  const document = workflow({
    nodes: [{ id: "review", gate: {} }, { id: "rest", wait: { signal: "go" } }, markNode("after")],
    actions: [markAction("after")],
    transitions: [
      { from_node_id: "review", to_node_id: "rest" },
      { from_node_id: "rest", to_node_id: "after" },
    ],
    output_mapping: ["${state.review.choice}", "${state.rest}"],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await apply(id, "pause");
  assert.equal((await control(id, "gates/g1", { choice: "approve" })).status, 200);
  assert.equal((await control(id, "signals/go", { heard: true })).status, 200);
  const standing = await curfew.run(id);
  assert.equal(standing.status, "paused");
  assert.equal(standing.counts["pending"], 1);
  await apply(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["approve", { heard: true }]);
});

test("the work of a child is kept during its parent's pause, and the child ends after the resume", async () => {
  const key = freshId("k");
  const child = oneRequest("${input.url}", { workflow: { output_mapping: "${state.work.status}" } });
  const parent = workflow({
    nodes: [{ id: "call", workflow_id: child.id }, markNode("after")],
    actions: [markAction("after")],
    transitions: [{ from_node_id: "call", to_node_id: "after" }],
    output_mapping: "${state.call}",
  });
  const id = await curfew.storeAndStart([child, parent], { url: `${peer.url}/held/${key}` });
  await until("the request at the peer", () => peer.seen(`/held/${key}`).length === 1);
  const childId = childRunId(id);
  await apply(id, "pause");
  await until("the child to be paused, too", async () => (await curfew.run(childId)).status === "paused");
  peer.release(key);
  await until("the child to store its result", async () => (await curfew.tokens(childId))[0]?.status === "completed");
  assert.equal((await curfew.run(childId)).status, "paused");
  assert.equal((await curfew.run(id)).status, "paused");
  await apply(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, 200);
});

test("cancel ends a paused run and closes its call", async () => {
  const path = `/hang/${freshId("h")}`;
  const document = oneRequest("${input.url}");
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: peer.url + path });
  await until("the request at the peer", () => peer.seen(path).length === 1);
  await apply(id, "pause");
  assert.equal((await apply(id, "cancel")).status, "cancelled");
  await until("the connection to be closed", () => peer.seen(path)[0]?.aborted === true);
  const resumed = await control(id, "resume");
  assert.equal(resumed.status, 409, resumed.text);
  assert.equal(resumed.json.error.code, "run_finished");
});

test("only a paused run can be resumed; pausing is idempotent", async () => {
  const document = workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }] });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const early = await control(id, "resume");
  assert.equal(early.status, 409, early.text);
  assert.equal(early.json.error.code, "not_paused");
  const [first, second] = [await apply(id, "pause"), await apply(id, "pause")];
  assert.deepEqual(second.deadlines, first.deadlines);
  await until("the index to be updated", async () => {
    const { json } = await curfew.api("GET", "/v1/runs?status=paused&limit=1000");
    return json.items.some((run: { id: string }) => run.id === id);
  });
  assert.equal((await apply(id, "resume")).status, "waiting");
  assert.equal((await control(id, "resume")).status, 409);
  await apply(id, "cancel");
});

test("ended and unknown runs cannot be controlled", async () => {
  const { id } = await curfew.runToEnd(oneTask([set({ a: 1 })]));
  for (const name of ["pause", "resume", "cancel"]) {
    const ended = await control(id, name);
    assert.equal(ended.status, 409, `${name}: ${ended.text}`);
    assert.equal(ended.json.error.code, "run_finished");
    assert.equal((await control("no-such-run", name)).status, 404);
  }
});

/** count (increments state.count) -> ask -> done. */
const counting = () =>
  workflow({
    nodes: [
      { id: "count", output_mapping: { "state.count": "${has(state.count) ? state.count + 1 : 1}" } },
      { id: "ask", action_id: "ask", output_mapping: { "state.count": "${state.count + 10}", "state.asked": "${result.body.count}" } },
      { id: "done", output_mapping: { "output.attempt": "${run.attempt}" } },
    ],
    transitions: [
      { from_node_id: "count", to_node_id: "ask" },
      { from_node_id: "ask", to_node_id: "done" },
    ],
    actions: [ask],
  });

test("restart: a failed run starts again as its next attempt, with a fresh state", async () => {
  const failed = await curfew.runToEnd(counting(), { url: `${peer.url}/flaky/${freshId("k")}/1/404` });
  assert.equal(failed.status, "failed");
  const restarted = await apply(failed.id, "restart");
  assert.equal(restarted.attempt, 2);
  assert.equal(restarted.error, null);
  const run = await curfew.ended(failed.id);
  assertCompleted(run);
  assert.deepEqual(run.context.state, { count: 11, asked: 2 });
  assert.deepEqual(run.output, { attempt: 2 });
  assert.ok((run.timeout_at ?? 0) > (failed.timeout_at ?? 0), "the attempt has its whole time again");
});

test("restart from a node: the state is the one the run had when it reached the node", async () => {
  const first = await curfew.runToEnd(counting(), { url: `${peer.url}/count/${freshId("k")}` });
  assertCompleted(first);
  assert.deepEqual(first.context.state, { count: 11, asked: 1 });
  const response = await control(first.id, "restart", { from_node_id: "ask" });
  assert.equal(response.status, 200, response.text);
  const run = await curfew.ended(first.id);
  assertCompleted(run);
  assert.deepEqual(run.context.state, { count: 11, asked: 2 }, "writes before the node are kept, writes after it are undone");
  assert.deepEqual((await curfew.tokens(first.id)).map((token) => token.node_id), ["count", "ask", "done", "ask", "done"]);
});

test("a restart of a live run ends its work; an unknown node is refused", async () => {
  const path = `/hang-first/${freshId("k")}/1`;
  const document = counting();
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: peer.url + path });
  await until("the request at the peer", () => peer.seen(path).length === 1);
  const unknown = await control(id, "restart", { from_node_id: "nowhere" });
  assert.equal(unknown.status, 422, unknown.text);
  assert.equal(unknown.json.error.pointer, "/from_node_id");
  const unvisited = await control(id, "restart", { from_node_id: "done" });
  assert.ok([409, 422].includes(unvisited.status), unvisited.text);
  assert.equal((await curfew.run(id)).attempt, 1, "a refusal changes nothing");
  await apply(id, "restart");
  await until("the old call to be closed", () => peer.seen(path)[0]?.aborted === true);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.context.state.asked, 2);
  const [, old] = await curfew.tokens(id);
  assert.deepEqual([old?.status, old?.reason], ["cancelled", "run_restarted"]);
  assert.equal((await control("no-such-run", "restart")).status, 404);
});
