// Sub-workflows as real child objects: results both ways, failures, deadlines, cancels, recursion, restarts.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { check, freshId, mark, marked, oneRequest, oneTask, request, set, workflow, type WorkflowDocument } from "./documents.ts";
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

/** A workflow of one node, `call`, that runs `child` with this run's input and returns what it returned. */
const calling = (child: WorkflowDocument, more: { node?: object; workflow?: object } = {}): WorkflowDocument =>
  workflow({
    nodes: [{ id: "call", workflow_id: child.id, ...more.node }],
    output_mapping: "${state.call}",
    ...more.workflow,
  });

const doubling = () => oneTask([set({ doubled: "${input.n + input.n}" })]);
const failing = () => oneTask([check("false", "the child is unwell")]);
const hanging = (more: Parameters<typeof oneRequest>[1] = {}) => oneRequest("${input.url}", more);

async function stored<T extends WorkflowDocument>(document: T): Promise<T> {
  await curfew.store(document);
  return document;
}

/** Stores children first, and starts a run of the last. */
async function startOf(documents: WorkflowDocument[], input: unknown = {}, at: Curfew = curfew): Promise<string> {
  for (const document of documents) await at.store(document);
  return at.start(documents.at(-1)!.id, input);
}
const endOf = async (documents: WorkflowDocument[], input: unknown = {}) => curfew.ended(await startOf(documents, input));

/** The parent's first token is t1; its child is named after it. */
const childOf = (runId: string) => `${runId}~t1`;

function assertCompleted(run: RunView): void {
  assert.equal(run.status, "completed", JSON.stringify(run.error));
}

const reached = (path: string) => until("the peer to be asked", () => peer.seen(path).length > 0);
const aborted = (path: string) => until(`the connection to ${path} to be closed`, () => peer.seen(path)[0]?.aborted === true);

test("a node: the child gets the input, the parent gets its output, each knows the other", async () => {
  const child = doubling();
  const parent = calling(child, { node: { input_mapping: { n: "${input.m + 1}" } } });
  const run = await endOf([child, parent], { m: 20 });
  assertCompleted(run);
  assert.deepEqual(run.output, { doubled: 42 });
  assert.equal(run.parent, undefined);
  assert.equal(run.root_run_id, run.id);
  const [token] = await curfew.tokens(run.id);
  assert.deepEqual([token?.status, token?.output], ["completed", { doubled: 42 }]);
  const own = await curfew.run(childOf(run.id));
  assertCompleted(own);
  assert.equal(own.workflow_id, child.id);
  assert.deepEqual(own.input, { n: 21 });
  assert.deepEqual(own.parent, { run_id: run.id, token_id: "t1" });
  assert.equal(own.root_run_id, run.id);
  const listed = await until("the child in the index", async () => {
    const { json } = await curfew.api("GET", `/v1/runs?workflow=${child.id}`);
    return json.items[0]?.status === "completed" && json.items[0];
  });
  assert.deepEqual(listed.parent, { run_id: run.id, token_id: "t1" });
});

test("an action of kind workflow_call means the same, in a node and in a task of one step", async () => {
  const child = doubling();
  const call = { kind: "workflow_call", implementation: { workflow_id: child.id } };
  const byAction = workflow({
    nodes: [{ id: "call", action_id: "call", input_mapping: { n: "${input.m}" } }],
    actions: [{ id: "call", ...call }],
    output_mapping: "${state.call}",
  });
  const byTask = oneTask([{ action: call, input_mapping: { n: "${input.m}" } }]);
  for (const parent of [byAction, byTask]) {
    const run = await endOf([child, parent], { m: 4 });
    assertCompleted(run);
    assert.deepEqual(run.output, { doubled: 8 });
    assert.equal((await curfew.run(childOf(run.id))).parent?.run_id, run.id);
  }
});

test("while the child works its parent's token waits, and the run is running", async () => {
  const key = freshId("k");
  const id = await startOf([...[hanging()].flatMap((child) => [child, calling(child)])], { url: `${peer.url}/held/${key}` });
  await reached(`/held/${key}`);
  const run = await curfew.run(id);
  assert.equal(run.status, "running");
  assert.deepEqual(run.counts, { waiting_for_subworkflow: 1 });
  peer.release(key);
  assertCompleted(await curfew.ended(id));
});

test("a child that fails fails its parent's token with its error", async () => {
  const child = failing();
  const run = await endOf([child, calling(child)]);
  assert.equal(run.status, "failed");
  assert.deepEqual([run.error?.class, run.error?.message, run.error?.node_id], ["assertion", "the child is unwell", "call"]);
  assert.equal((await curfew.run(childOf(run.id))).status, "failed");
});

test("the failure route sees the child's error", async () => {
  const child = failing();
  const parent = workflow({
    nodes: [{ id: "call", workflow_id: child.id }, { id: "sorry", output_mapping: { "output.said": "${error.message}" } }],
    transitions: [{ from_node_id: "call", to_node_id: "sorry", on: "failure", condition: "error.class == 'assertion'" }],
  });
  const run = await endOf([child, parent]);
  assertCompleted(run);
  assert.deepEqual(run.output, { said: "the child is unwell" });
});

test("catch returns the failure as a result, from a node and from an action", async () => {
  const child = failing();
  const byNode = calling(child, { node: { on_failure: "catch" } });
  const byAction = workflow({
    nodes: [{ id: "call", action_id: "call" }],
    actions: [{ id: "call", kind: "workflow_call", implementation: { workflow_id: child.id, on_failure: "catch" } }],
    output_mapping: "${state.call}",
  });
  for (const parent of [byNode, byAction]) {
    const run = await endOf([child, parent]);
    assertCompleted(run);
    assert.equal(run.output.status, "failed");
    assert.equal(run.output.error.message, "the child is unwell");
    assert.equal(run.output.run_id, childOf(run.id));
  }
});

test("a child that times out takes its parent's timeout route", async () => {
  const child = hanging({ workflow: { timeout: "500ms" } });
  const parent = calling(child, { workflow: { output_mapping: "${state.late.visited}" } });
  parent.nodes.push(marked("late"));
  const path = `/hang/${freshId("h")}`;
  const documents = [
    child,
    { ...parent, actions: [mark("late")], transitions: [{ from_node_id: "call", to_node_id: "late", on: "timeout" }] },
  ];
  const run = await endOf(documents, { url: peer.url + path });
  assertCompleted(run);
  assert.equal(run.output, "late");
  assert.equal((await curfew.run(childOf(run.id))).status, "timed_out");
  await aborted(path);
});

test("an input that the child's schema refuses fails the token as a validation", async () => {
  const child = { ...doubling(), input_schema: { type: "object", required: ["n"] } };
  const run = await endOf([child, calling(child)], { m: 1 });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.class, "validation");
  assert.match(run.error?.message ?? "", /input_schema/);
});

test("cancel goes down to the last child and closes its call", async () => {
  const path = `/hang/${freshId("h")}`;
  const grandchild = hanging();
  const child = calling(grandchild);
  const id = await startOf([grandchild, child, calling(child)], { url: peer.url + path });
  await reached(path);
  const cancelled = await curfew.api("POST", `/v1/runs/${id}/cancel`, { reason: "enough" });
  assert.equal(cancelled.json.status, "cancelled", cancelled.text);
  for (const run of [childOf(id), childOf(childOf(id))]) assert.equal((await curfew.ended(run)).status, "cancelled");
  await aborted(path);
  const last = await curfew.run(childOf(childOf(id)));
  assert.deepEqual(last.parent, { run_id: childOf(id), token_id: "t1" });
  assert.equal(last.root_run_id, id);
});

test("the parent's own deadline ends its children", async () => {
  const path = `/hang/${freshId("h")}`;
  const child = hanging();
  const run = await endOf([child, calling(child, { workflow: { timeout: "700ms" } })], { url: peer.url + path });
  assert.equal(run.status, "timed_out");
  assert.equal((await curfew.ended(childOf(run.id))).status, "cancelled");
  await aborted(path);
});

test("a child cancelled by hand fails its parent's token", async () => {
  const path = `/hang/${freshId("h")}`;
  const child = hanging();
  const id = await startOf([child, calling(child)], { url: peer.url + path });
  await reached(path);
  assert.equal((await curfew.api("POST", `/v1/runs/${childOf(id)}/cancel`)).status, 200);
  const run = await curfew.ended(id);
  assert.equal(run.status, "failed");
  assert.match(run.error?.message ?? "", /child run .* ended cancelled/);
});

test("timeout: the node's goes before the action's, the action's before the child's own", async () => {
  const child = hanging({ workflow: { timeout: "900ms" } });
  const call = (execution: object) => ({ id: "call", kind: "workflow_call", implementation: { workflow_id: child.id }, execution });
  const byAction = (node: object) =>
    workflow({ nodes: [{ id: "call", action_id: "call", ...node }], actions: [call({ timeout_ms: 700 })] });
  const cases: [parent: WorkflowDocument, timeoutMs: number][] = [
    [calling(child), 900],
    [byAction({}), 700],
    [byAction({ timeout_ms: 500 }), 500],
    [calling(child, { node: { timeout_ms: 1_200 } }), 1_200],
  ];
  for (const [parent, timeoutMs] of cases) {
    const path = `/hang/${freshId("h")}`;
    const run = await endOf([child, parent], { url: peer.url + path });
    assert.equal(run.status, "failed");
    assert.equal(run.error?.class, "timeout");
    assert.equal((await curfew.tokens(run.id))[0]?.status, "timed_out");
    const own = await curfew.ended(childOf(run.id));
    assert.equal(own.timeout_ms, timeoutMs);
    assert.ok(["timed_out", "cancelled"].includes(own.status), own.status);
    await aborted(path);
  }
});

test("inherit_budget: a child gets at most what is left of its parent, else its own time", async () => {
  const long = { ...doubling(), timeout: "1h" };
  const short = { ...doubling(), timeout: "5s" };
  const inheriting = (child: WorkflowDocument) => calling(child, { workflow: { timeouts: { inherit_budget: true } } });
  const timeoutOf = async (documents: WorkflowDocument[]) => {
    const run = await endOf(documents, { n: 1 });
    assertCompleted(run);
    return (await curfew.run(childOf(run.id))).timeout_ms ?? Number.NaN;
  };
  assert.equal(await timeoutOf([long, calling(long)]), 3_600_000);
  const inherited = await timeoutOf([long, inheriting(long)]);
  assert.ok(inherited <= 30_000 && inherited > 20_000, `${inherited}`);
  assert.equal(await timeoutOf([short, inheriting(short)]), 5_000);
});

/** Calls itself with n - 1 until n is 0, and counts the calls. */
function recursive(): WorkflowDocument {
  const id = freshId("w");
  return workflow({
    id,
    nodes: [
      { id: "start" },
      {
        id: "down",
        workflow_id: id,
        input_mapping: { n: "${input.n - 1}" },
        output_mapping: { "output.calls": "${result.calls + 1}" },
      },
      { id: "base", output_mapping: { "output.calls": 0 } },
    ],
    transitions: [
      { from_node_id: "start", to_node_id: "down", condition: "input.n > 0" },
      { from_node_id: "start", to_node_id: "base", condition: "input.n <= 0" },
    ],
  });
}

test("a workflow may call itself", async () => {
  const run = await endOf([recursive()], { n: 5 });
  assertCompleted(run);
  assert.deepEqual(run.output, { calls: 5 });
});

test("calls go 16 deep and no deeper", async () => {
  const document = recursive();
  const deepest = await endOf([document], { n: 15 });
  assertCompleted(deepest);
  assert.deepEqual(deepest.output, { calls: 15 });
  const run = await curfew.ended(await curfew.start(document.id, { n: 16 }));
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "workflows may not call each other more than 16 deep");
});

test("an unknown child is refused when the parent is stored", async () => {
  const parent = calling(doubling());
  const answer = await curfew.api("PUT", `/v1/workflows/${parent.id}`, parent);
  assert.equal(answer.status, 422, answer.text);
  assert.deepEqual([answer.json.error.details[0].pointer, answer.json.error.details[0].code], [
    "/nodes/0/workflow_id",
    "unknown_reference",
  ]);
});

test("a run keeps the children it began with", async () => {
  const key = freshId("k");
  const child = oneTask([set({ says: "old" })]);
  const parent = workflow({
    nodes: [{ id: "first", task_id: "first" }, { id: "call", workflow_id: child.id }],
    tasks: [{ id: "first", steps: [request({ url: "${input.url}" })] }],
    transitions: [{ from_node_id: "first", to_node_id: "call" }],
    output_mapping: "${state.call.says}",
  });
  const id = await startOf([child, parent], { url: `${peer.url}/held/${key}` });
  await reached(`/held/${key}`);
  await curfew.store({ ...oneTask([set({ says: "new" })]), id: child.id });
  peer.release(key);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, "old");
  assert.equal((await curfew.run(`${id}~t2`)).version, 1);
});

test("ten children at once, joined", async () => {
  const child = doubling();
  const parent = workflow({
    nodes: [{ id: "start" }, { id: "call", workflow_id: child.id, input_mapping: { n: "${n}" } }, { id: "done" }],
    transitions: [
      { id: "each", from_node_id: "start", to_node_id: "call", foreach: { collection: "input.numbers", item_var: "n" } },
      {
        from_node_id: "call",
        to_node_id: "done",
        synchronization: { sibling_group: "each", merge: { source: "_branch.output.doubled", target: "state.all" } },
      },
    ],
    output_mapping: "${state.all}",
  });
  const numbers = Array.from({ length: 10 }, (_, n) => n);
  const run = await endOf([child, parent], { numbers });
  assertCompleted(run);
  assert.deepEqual(run.output, numbers.map((n) => 2 * n));
});

test("the losers of a join are cancelled, and their children with them", async () => {
  const [fast, slow] = [doubling(), hanging()];
  const path = `/hang/${freshId("h")}`;
  const key = freshId("k");
  const parent = workflow({
    nodes: [
      { id: "start" },
      { id: "wait-for-slow", task_id: "held" },
      { id: "fast", workflow_id: fast.id },
      { id: "slow", workflow_id: slow.id },
      { id: "done" },
    ],
    tasks: [{ id: "held", steps: [request({ url: `${peer.url}/held/${key}` })] }],
    transitions: [
      { from_node_id: "start", to_node_id: "wait-for-slow", sibling_group: "race" },
      { from_node_id: "start", to_node_id: "slow", sibling_group: "race" },
      { from_node_id: "wait-for-slow", to_node_id: "fast" },
      ...["fast", "slow"].map((id) => ({
        from_node_id: id,
        to_node_id: "done",
        synchronization: { strategy: "any", sibling_group: "race", on_early_complete: "cancel" },
      })),
    ],
  });
  const id = await startOf([fast, slow, parent], { url: peer.url + path, n: 1 });
  await reached(path);
  peer.release(key);
  assertCompleted(await curfew.ended(id));
  const losing = (await curfew.tokens(id)).find((token) => token.node_id === "slow");
  assert.equal(losing?.status, "cancelled");
  assert.equal((await curfew.ended(`${id}~${losing?.id}`)).status, "cancelled");
  await aborted(path);
});

test("parent and child survive the process and find each other again", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
  /** One life of the process. Attempts are looked after every second: nobody asks for the child, its alarm must. */
  const during = async <T>(work: (life: Curfew) => Promise<T>): Promise<T> => {
    const life = await startCurfew({ persistTo: directory, vars: { CURFEW_WATCH_MS: "1000" } });
    try {
      return await work(life);
    } finally {
      await life.dispose();
    }
  };
  try {
    const listening = workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }], output_mapping: "${state.rest}" });
    const asking = oneRequest("${input.url}", { workflow: { output_mapping: "${state.work.body.count}" } });
    const path = `/hang-first/${freshId("k")}/1`;
    const [waits, works] = await during(async (life): Promise<[string, string]> => {
      const waits = await startOf([listening, calling(listening)], {}, life);
      await until("the child to wait", async () => {
        const answer = await life.api("GET", `/v1/runs/${childOf(waits)}`);
        return answer.status === 200 && answer.json.status === "waiting";
      });
      const works = await startOf([asking, calling(asking)], { url: peer.url + path }, life);
      await reached(path);
      return [waits, works];
    });
    await during(async (life) => {
      const answer = await life.api("POST", `/v1/runs/${childOf(waits)}/signals/go`, { after: "the restart" });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual((await life.ended(waits)).output, { after: "the restart" });
      // The call was in flight when the process went: the child makes it again.
      const run = await life.ended(works);
      assertCompleted(run);
      assert.equal(run.output, 2);
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** A run that waits for the signal `go`. */
const listening = () => workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }], output_mapping: "${state.rest}" });

test("nobody can choose the id of a child", async () => {
  const child = await stored(listening());
  for (const run_id of ["a~t1", "a~", "~", ".", "..", "a%7Et1"]) {
    const answer = await curfew.api("POST", `/v1/workflows/${child.id}/runs`, { run_id });
    assert.deepEqual([answer.status, answer.json.error.pointer], [422, "/run_id"], `${run_id}: ${answer.text}`);
  }
  for (const path of ["/v1/runs/a~", "/v1/runs/~", "/v1/runs/a~~b"]) {
    assert.equal((await curfew.api("GET", path)).status, 400, path);
  }
});

test("a child is read and controlled by its id, also as careful clients write it", async () => {
  const child = listening();
  const id = await startOf([child, calling(child)]);
  const written = childOf(id).replace("~", "%7E");
  await until("the child to wait", async () => (await curfew.api("GET", `/v1/runs/${written}`)).json?.status === "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${written}/pause`)).json.status, "paused");
  assert.equal((await curfew.api("POST", `/v1/runs/${written.toLowerCase()}/resume`)).json.status, "waiting");
  assert.equal((await curfew.api("GET", `/v1/runs/${written}/tokens`)).json.items.length, 1);
  assert.equal((await curfew.api("POST", `/v1/runs/${written}/signals/go`, { n: 1 })).status, 200);
  assert.deepEqual((await curfew.ended(id)).output, { n: 1 });
});

test("the id that a child used to have is any caller's, and the parent never touches that run", async () => {
  const [child, stranger] = [listening(), await stored(listening())];
  const parent = await stored(calling(await stored(child)));
  const run_id = freshId("parent");
  const taken = await curfew.start(stranger.id, {}, { run_id: `${run_id}.t1` });
  await curfew.start(parent.id, {}, { run_id });
  await until("the child to wait", async () => (await curfew.api("GET", `/v1/runs/${childOf(run_id)}`)).json?.status === "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${run_id}/pause`)).status, 200);
  await until("the child to stand still", async () => (await curfew.run(childOf(run_id))).status === "paused");
  assert.equal((await curfew.run(taken)).status, "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${run_id}/cancel`)).status, 200);
  assert.equal((await curfew.ended(childOf(run_id))).status, "cancelled");
  assert.equal((await curfew.run(taken)).status, "waiting");
});

test("a run that has the id of a child and is not it fails the token, and is left alone", async () => {
  const [child, other] = [await stored(listening()), await stored(listening())];
  const parent = await stored(calling(child));
  const run_id = freshId("parent");
  // Nobody can start such a run over the API: it is put into its object as another parent's child would be.
  const started = await curfew.start(other.id);
  const stored_version = (await curfew.api("GET", `/v1/workflows/${other.id}`)).json;
  const command = {
    run_id: childOf(run_id),
    stored: { version: stored_version.version, workflow: { ...stored_version.document, on_timeout: "human_gate" }, tasks: [], node_tasks: [null] },
    input: {},
    request: {},
    parent: { run_id: started, token_id: "t1", epoch: 1, root_run_id: started, depth: 1 },
  };
  const response = await curfew.askRun(childOf(run_id), { start: { command } });
  assert.equal(response.status, 201, response.text);
  await curfew.start(parent.id, {}, { run_id });
  const run = await curfew.ended(run_id);
  assert.deepEqual([run.status, run.error?.code, run.error?.class], ["failed", "child_id_taken", "permanent"]);
  const stranger = await curfew.run(childOf(run_id));
  assert.deepEqual([stranger.status, stranger.parent], ["waiting", { run_id: started, token_id: "t1" }]);
  // What is said in the name of a parent that is not its own changes nothing either.
  const refused = async (request: unknown) => {
    const { status, json } = await curfew.askRun(childOf(run_id), request);
    return [status, json.error.code];
  };
  const sender = { run_id, token_id: "t1" };
  assert.deepEqual(await refused({ cancel_child: { reason: "run_cancelled", sender } }), [409, "not_the_parent"]);
  assert.deepEqual(await refused({ hold_child: { number: 1, held: true, sender } }), [409, "not_the_parent"]);
  assert.deepEqual(await refused({ hold_child: { number: 1, held: true } }), [400, "invalid_request"]);
  assert.equal((await curfew.run(childOf(run_id))).status, "waiting");
});
