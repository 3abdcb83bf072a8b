// Pause and resume: the clocks stop, nothing new begins, nothing that was done is lost. Restart: the same run again.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ask, fan, freshId, mark, marked, oneRequest, oneTask, set, workflow } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { RunView } from "./wire.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const control = (runId: string, name: string, body?: unknown) => curfew.api("POST", `/v1/runs/${runId}/${name}`, body);

async function done(runId: string, name: string): Promise<RunView> {
  const answer = await control(runId, name);
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
}

function assertCompleted(run: RunView): void {
  assert.equal(run.status, "completed", JSON.stringify(run.error));
}

const passed = (moment: number) => until("that moment to pass", () => Date.now() > moment);

/** first -> second, each a request to a url of the input. */
const twoRequests = (more: Record<string, unknown> = {}) =>
  workflow({
    nodes: ["first", "second"].map((id) => ({ id, action_id: "ask", input_mapping: { url: `\${input.${id}}` }, ...more })),
    transitions: [{ from_node_id: "first", to_node_id: "second" }],
    actions: [ask],
    output_mapping: "${state.second.status}",
  });

test("paused: clocks show what is left, work in flight is kept, nothing new begins, resume goes on", async () => {
  const [key, path] = [freshId("k"), `/ok/${freshId("p")}`];
  const document = twoRequests({ timeout: "20s" });
  await curfew.store(document);
  const id = await curfew.start(document.id, { first: `${peer.url}/held/${key}`, second: peer.url + path });
  await until("the peer to be asked", () => peer.seen(`/held/${key}`).length === 1);
  const { timeout_at: timeoutAt } = await curfew.run(id);
  assert.ok(timeoutAt);

  const beforePause = Date.now();
  const paused = await done(id, "pause");
  const afterPause = Date.now();
  assert.equal(paused.status, "paused");
  assert.deepEqual(paused.deadlines.map(({ kind }) => kind), ["workflow", "execution"]);
  for (const [deadline, most] of [[paused.deadlines[0], 30_000], [paused.deadlines[1], 20_000]] as const) {
    assert.equal(deadline?.due_at, undefined);
    const left = deadline?.remaining_ms ?? -1;
    assert.ok(left > most - 10_000 && left <= most, `${JSON.stringify(deadline)}`);
  }

  peer.release(key);
  await until("the result to be kept", async () => (await curfew.tokens(id))[0]?.status === "completed");
  const [, next] = await curfew.tokens(id);
  assert.deepEqual([next?.node_id, next?.status, next?.epoch], ["second", "pending", 0]);
  const standing = await curfew.run(id);
  assert.equal(standing.status, "paused");
  assert.equal(standing.context.state.first.status, 200);
  assert.equal(peer.seen(path).length, 0, "the next node was not begun");

  const beforeResume = Date.now();
  const resumed = await done(id, "resume");
  const shift = (resumed.timeout_at ?? 0) - timeoutAt;
  assert.ok(shift >= beforeResume - afterPause && shift <= Date.now() - beforePause, `${shift} ms`);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, 200);
  assert.equal(peer.seen(path).length, 1);
});

test("a paused run does not time out, nor its work, and both have their time when it goes on", async () => {
  const path = `/hang-first/${freshId("k")}/1`;
  const document = oneRequest("${input.url}", { node: { timeout: "1s" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: peer.url + path });
  await until("the peer to be asked", () => peer.seen(path).length === 1);
  await done(id, "pause");
  // The executor has a clock of its own that nobody can stop; what it says must not end the run.
  await until("the executor to give up", () => peer.seen(path)[0]?.aborted === true);
  await until("the run to hear of it", async () => (await curfew.tokens(id))[0]?.status === "pending");
  assert.equal((await curfew.run(id)).status, "paused");
  const resumed = await done(id, "resume");
  assert.ok((resumed.timeout_at ?? 0) > Date.now(), "the deadline lies ahead again");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output.body.count, 2);
});

test("a call of a paused run goes on past the limit that the run had, and is made once", async () => {
  const key = freshId("k");
  const document = oneRequest(`${peer.url}/held/${key}`, { workflow: { timeout: "2s" } });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await until("the peer to be asked", () => peer.seen(`/held/${key}`).length === 1);
  const paused = await done(id, "pause");
  await passed((paused.timeout_at ?? 0) + 1_000);
  assert.equal(peer.seen(`/held/${key}`)[0]?.closedAt, undefined, "it is still open");
  await done(id, "resume");
  peer.release(key);
  assertCompleted(await curfew.ended(id));
  assert.equal(peer.seen(`/held/${key}`).length, 1);
});

test("a paused run survives the process, and the deadlines that passed meanwhile", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
  try {
    const path = `/hang-first/${freshId("k")}/1`;
    const document = oneRequest("${input.url}", { node: { timeout: "2s" } });
    let life = await startCurfew({ persistTo: directory });
    await life.store(document);
    const id = await life.start(document.id, { url: peer.url + path });
    await until("the peer to be asked", () => peer.seen(path).length === 1);
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

test("a sleep goes on where it stood", async () => {
  const document = workflow({ nodes: [{ id: "rest", wait: { sleep: "900ms" } }, marked("after")], actions: [mark("after")] });
  document["transitions"] = [{ from_node_id: "rest", to_node_id: "after" }];
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const paused = await done(id, "pause");
  const left = paused.deadlines.find(({ kind }) => kind === "wait")?.remaining_ms ?? -1;
  assert.ok(left > 0 && left <= 900, `${left}`);
  await passed(paused.started_at + 1_200);
  assert.equal((await curfew.tokens(id)).length, 1, "its time passed while the clocks stood still");
  const resumedAt = Date.now();
  await done(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  const [token] = await curfew.tokens(id);
  assert.ok((token?.ended_at ?? 0) - resumedAt >= left - 50, "the rest of the sleep was slept");
});

test("a join's wait stands still, too", async () => {
  const key = freshId("k");
  const document = fan({ join: { timeout: "900ms" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: [`${peer.url}/ok?n=0`, `${peer.url}/held/${key}?n=1`] });
  await until("one to arrive", async () => (await curfew.run(id)).counts["waiting_for_siblings"] === 1);
  const paused = await done(id, "pause");
  const left = paused.deadlines.find(({ kind }) => kind === "synchronization")?.remaining_ms ?? -1;
  assert.ok(left >= 0 && left <= 900, `${left}`);
  await passed(Date.now() + left + 200);
  assert.equal((await curfew.run(id)).status, "paused");
  peer.release(key);
  await until("the second to arrive", async () => (await curfew.run(id)).counts["executing"] === undefined);
  await done(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["0", "1"]);
});

test("decisions and signals are taken while paused; what follows them waits", async () => {
  const document = workflow({
    nodes: [{ id: "review", gate: {} }, { id: "rest", wait: { signal: "go" } }, marked("after")],
    actions: [mark("after")],
    transitions: [
      { from_node_id: "review", to_node_id: "rest" },
      { from_node_id: "rest", to_node_id: "after" },
    ],
    output_mapping: ["${state.review.choice}", "${state.rest}"],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await done(id, "pause");
  assert.equal((await control(id, "gates/g1", { choice: "approve" })).status, 200);
  assert.equal((await control(id, "signals/go", { heard: true })).status, 200);
  const standing = await curfew.run(id);
  assert.equal(standing.status, "paused");
  assert.equal(standing.counts["pending"], 1);
  await done(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["approve", { heard: true }]);
});

test("what a child did while its parent was paused is kept, and it ends when both go on", async () => {
  const key = freshId("k");
  const child = oneRequest("${input.url}", { workflow: { output_mapping: "${state.work.status}" } });
  const parent = workflow({
    nodes: [{ id: "call", workflow_id: child.id }, marked("after")],
    actions: [mark("after")],
    transitions: [{ from_node_id: "call", to_node_id: "after" }],
    output_mapping: "${state.call}",
  });
  await curfew.store(child);
  await curfew.store(parent);
  const id = await curfew.start(parent.id, { url: `${peer.url}/held/${key}` });
  await until("the peer to be asked", () => peer.seen(`/held/${key}`).length === 1);
  const childId = `${id}~t1`;
  await done(id, "pause");
  await until("the child to stand still, too", async () => (await curfew.run(childId)).status === "paused");
  peer.release(key);
  await until("the child to keep its result", async () => (await curfew.tokens(childId))[0]?.status === "completed");
  assert.equal((await curfew.run(childId)).status, "paused");
  assert.equal((await curfew.run(id)).status, "paused");
  await done(id, "resume");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, 200);
});

test("cancel ends a paused run and closes its call", async () => {
  const path = `/hang/${freshId("h")}`;
  const document = oneRequest("${input.url}");
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: peer.url + path });
  await until("the peer to be asked", () => peer.seen(path).length === 1);
  await done(id, "pause");
  assert.equal((await done(id, "cancel")).status, "cancelled");
  await until("the connection to be closed", () => peer.seen(path)[0]?.aborted === true);
  const resumed = await control(id, "resume");
  assert.equal(resumed.status, 409, resumed.text);
  assert.equal(resumed.json.error.code, "run_finished");
});

test("only a paused run can be resumed; pausing twice is pausing once", async () => {
  const document = workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }] });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const early = await control(id, "resume");
  assert.equal(early.status, 409, early.text);
  assert.equal(early.json.error.code, "not_paused");
  const [first, second] = [await done(id, "pause"), await done(id, "pause")];
  assert.deepEqual(second.deadlines, first.deadlines);
  await until("the index to say so", async () => {
    const { json } = await curfew.api("GET", "/v1/runs?status=paused&limit=1000");
    return json.items.some((run: { id: string }) => run.id === id);
  });
  assert.equal((await done(id, "resume")).status, "waiting");
  assert.equal((await control(id, "resume")).status, 409);
  await done(id, "cancel");
});

test("no control for a run that ended, or never was", async () => {
  const { id } = await curfew.runToEnd(oneTask([set({ a: 1 })]));
  for (const name of ["pause", "resume", "cancel"]) {
    const ended = await control(id, name);
    assert.equal(ended.status, 409, `${name}: ${ended.text}`);
    assert.equal(ended.json.error.code, "run_finished");
    assert.equal((await control("no-such-run", name)).status, 404);
  }
});

/** count (writes state.count, once more each time) -> ask -> done. */
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

test("restart: a failed run begins again as its next attempt, with nothing of the last", async () => {
  const failed = await curfew.runToEnd(counting(), { url: `${peer.url}/flaky/${freshId("k")}/1/404` });
  assert.equal(failed.status, "failed");
  const restarted = await done(failed.id, "restart");
  assert.equal(restarted.attempt, 2);
  assert.equal(restarted.error, null);
  const run = await curfew.ended(failed.id);
  assertCompleted(run);
  assert.deepEqual(run.context.state, { count: 11, asked: 2 });
  assert.deepEqual(run.output, { attempt: 2 });
  assert.ok((run.timeout_at ?? 0) > (failed.timeout_at ?? 0), "it has its whole time again");
});

test("restart from a node: the state is as it was when the run came there", async () => {
  const first = await curfew.runToEnd(counting(), { url: `${peer.url}/count/${freshId("k")}` });
  assertCompleted(first);
  assert.deepEqual(first.context.state, { count: 11, asked: 1 });
  const answer = await control(first.id, "restart", { from_node_id: "ask" });
  assert.equal(answer.status, 200, answer.text);
  const run = await curfew.ended(first.id);
  assertCompleted(run);
  assert.deepEqual(run.context.state, { count: 11, asked: 2 }, "what was counted before is kept, what came after is undone");
  assert.deepEqual((await curfew.tokens(first.id)).map((token) => token.node_id), ["count", "ask", "done", "ask", "done"]);
});

test("restart of a live run ends what it was doing; to no node it is refused", async () => {
  const path = `/hang-first/${freshId("k")}/1`;
  const document = counting();
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: peer.url + path });
  await until("the peer to be asked", () => peer.seen(path).length === 1);
  const unknown = await control(id, "restart", { from_node_id: "nowhere" });
  assert.equal(unknown.status, 422, unknown.text);
  assert.equal(unknown.json.error.pointer, "/from_node_id");
  const unvisited = await control(id, "restart", { from_node_id: "done" });
  assert.ok([409, 422].includes(unvisited.status), unvisited.text);
  assert.equal((await curfew.run(id)).attempt, 1, "a refusal changes nothing");
  await done(id, "restart");
  await until("the old call to be closed", () => peer.seen(path)[0]?.aborted === true);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.context.state.asked, 2);
  const [, old] = await curfew.tokens(id);
  assert.deepEqual([old?.status, old?.reason], ["cancelled", "run_restarted"]);
  assert.equal((await control("no-such-run", "restart")).status, 404);
});
