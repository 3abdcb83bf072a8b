// Sub-workflows as real child objects: input and output, failures, deadlines, cancels, recursion, restarts.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { callWorkflow, check, childRunId, freshId, markAction, markNode, oneRequest, oneTask, request, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const doubling = () => oneTask([set({ doubled: "${input.n + input.n}" })]);
const failing = () => oneTask([check("false", "the child is unwell")]);
const hanging = (more: Parameters<typeof oneRequest>[1] = {}) => oneRequest("${input.url}", more);

async function stored<T extends WorkflowDocument>(document: T): Promise<T> {
  await curfew.store(document);
  return document;
}

const runAllToEnd = async (documents: WorkflowDocument[], input: unknown = {}) => curfew.ended(await curfew.storeAndStart(documents, input));

const reached = (path: string) => until("the request at the peer", () => peer.seen(path).length > 0);
const aborted = (path: string) => until(`the connection to ${path} to be closed`, () => peer.seen(path)[0]?.aborted === true);

test("a node: the child gets the input, the parent gets its output, and each links to the other", async () => {
  const child = doubling();
  const parent = callWorkflow(child, { node: { input_mapping: { n: "${input.m + 1}" } } });
  const run = await runAllToEnd([child, parent], { m: 20 });
  assertCompleted(run);
  assert.deepEqual(run.output, { doubled: 42 });
  assert.equal(run.parent, undefined);
  assert.equal(run.root_run_id, run.id);
  const [token] = await curfew.tokens(run.id);
  assert.deepEqual([token?.status, token?.output], ["completed", { doubled: 42 }]);
  const own = await curfew.run(childRunId(run.id));
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

test("an action of kind workflow_call does the same, in a node and in a task of one step", async () => {
  const child = doubling();
  const call = { kind: "workflow_call", implementation: { workflow_id: child.id } };
  const byAction = workflow({
    nodes: [{ id: "call", action_id: "call", input_mapping: { n: "${input.m}" } }],
    actions: [{ id: "call", ...call }],
    output_mapping: "${state.call}",
  });
  const byTask = oneTask([{ action: call, input_mapping: { n: "${input.m}" } }]);
  for (const parent of [byAction, byTask]) {
    const run = await runAllToEnd([child, parent], { m: 4 });
    assertCompleted(run);
    assert.deepEqual(run.output, { doubled: 8 });
    assert.equal((await curfew.run(childRunId(run.id))).parent?.run_id, run.id);
  }
});

test("while the child works, its parent's token waits and the run is running", async () => {
  const key = freshId("k");
  const id = await curfew.storeAndStart([...[hanging()].flatMap((child) => [child, callWorkflow(child)])], { url: `${peer.url}/held/${key}` });
  await reached(`/held/${key}`);
  const run = await curfew.run(id);
  assert.equal(run.status, "running");
  assert.deepEqual(run.counts, { waiting_for_subworkflow: 1 });
  peer.release(key);
  assertCompleted(await curfew.ended(id));
});

test("a child that fails fails its parent's token with its error", async () => {
  const child = failing();
  const run = await runAllToEnd([child, callWorkflow(child)]);
  assert.equal(run.status, "failed");
  assert.deepEqual([run.error?.class, run.error?.message, run.error?.node_id], ["assertion", "the child is unwell", "call"]);
  assert.equal((await curfew.run(childRunId(run.id))).status, "failed");
});

test("the failure route sees the child's error", async () => {
  const child = failing();
  const parent = workflow({
    nodes: [{ id: "call", workflow_id: child.id }, { id: "sorry", output_mapping: { "output.said": "${error.message}" } }],
    transitions: [{ from_node_id: "call", to_node_id: "sorry", on: "failure", condition: "error.class == 'assertion'" }],
  });
  const run = await runAllToEnd([child, parent]);
  assertCompleted(run);
  assert.deepEqual(run.output, { said: "the child is unwell" });
});

test("catch returns the failure as a result, from a node and from an action", async () => {
  const child = failing();
  const byNode = callWorkflow(child, { node: { on_failure: "catch" } });
  const byAction = workflow({
    nodes: [{ id: "call", action_id: "call" }],
    actions: [{ id: "call", kind: "workflow_call", implementation: { workflow_id: child.id, on_failure: "catch" } }],
    output_mapping: "${state.call}",
  });
  for (const parent of [byNode, byAction]) {
    const run = await runAllToEnd([child, parent]);
    assertCompleted(run);
    assert.equal(run.output.status, "failed");
    assert.equal(run.output.error.message, "the child is unwell");
    assert.equal(run.output.run_id, childRunId(run.id));
  }
});

test("a child that times out takes its parent's timeout route", async () => {
  const child = hanging({ workflow: { timeout: "500ms" } });
  const parent = callWorkflow(child, { workflow: { output_mapping: "${state.late.visited}" } });
  parent.nodes.push(markNode("late"));
  const path = `/hang/${freshId("h")}`;
  const documents = [
    child,
    { ...parent, actions: [markAction("late")], transitions: [{ from_node_id: "call", to_node_id: "late", on: "timeout" }] },
  ];
  const run = await runAllToEnd(documents, { url: peer.url + path });
  assertCompleted(run);
  assert.equal(run.output, "late");
  assert.equal((await curfew.run(childRunId(run.id))).status, "timed_out");
  await aborted(path);
});

test("an input that violates the child's schema fails the token as a validation", async () => {
  const child = { ...doubling(), input_schema: { type: "object", required: ["n"] } };
  const run = await runAllToEnd([child, callWorkflow(child)], { m: 1 });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.class, "validation");
  assert.match(run.error?.message ?? "", /input_schema/);
});

test("cancel cancels all descendants and closes their calls", async () => {
  const path = `/hang/${freshId("h")}`;
  const grandchild = hanging();
  const child = callWorkflow(grandchild);
  const id = await curfew.storeAndStart([grandchild, child, callWorkflow(child)], { url: peer.url + path });
  await reached(path);
  const cancelled = await curfew.api("POST", `/v1/runs/${id}/cancel`, { reason: "enough" });
  assert.equal(cancelled.json.status, "cancelled", cancelled.text);
  for (const run of [childRunId(id), childRunId(childRunId(id))]) assert.equal((await curfew.ended(run)).status, "cancelled");
  await aborted(path);
  const last = await curfew.run(childRunId(childRunId(id)));
  assert.deepEqual(last.parent, { run_id: childRunId(id), token_id: "t1" });
  assert.equal(last.root_run_id, id);
});

test("the parent's own deadline ends its children", async () => {
  const path = `/hang/${freshId("h")}`;
  const child = hanging();
  const run = await runAllToEnd([child, callWorkflow(child, { workflow: { timeout: "700ms" } })], { url: peer.url + path });
  assert.equal(run.status, "timed_out");
  assert.equal((await curfew.ended(childRunId(run.id))).status, "cancelled");
  await aborted(path);
});

test("a child cancelled by hand fails its parent's token", async () => {
  const path = `/hang/${freshId("h")}`;
  const child = hanging();
  const id = await curfew.storeAndStart([child, callWorkflow(child)], { url: peer.url + path });
  await reached(path);
  assert.equal((await curfew.api("POST", `/v1/runs/${childRunId(id)}/cancel`)).status, 200);
  const run = await curfew.ended(id);
  assert.equal(run.status, "failed");
  assert.match(run.error?.message ?? "", /child run .* ended cancelled/);
});

test("timeout: the node's takes precedence over the action's, the action's over the child's own", async () => {
  const child = hanging({ workflow: { timeout: "900ms" } });
  const call = (execution: object) => ({ id: "call", kind: "workflow_call", implementation: { workflow_id: child.id }, execution });
  const byAction = (node: object) =>
    workflow({ nodes: [{ id: "call", action_id: "call", ...node }], actions: [call({ timeout_ms: 700 })] });
  const cases: [parent: WorkflowDocument, timeoutMs: number][] = [
    [callWorkflow(child), 900],
    [byAction({}), 700],
    [byAction({ timeout_ms: 500 }), 500],
    [callWorkflow(child, { node: { timeout_ms: 1_200 } }), 1_200],
  ];
  for (const [parent, timeoutMs] of cases) {
    const path = `/hang/${freshId("h")}`;
    const run = await runAllToEnd([child, parent], { url: peer.url + path });
    assert.equal(run.status, "failed");
    assert.equal(run.error?.class, "timeout");
    assert.equal((await curfew.tokens(run.id))[0]?.status, "timed_out");
    const own = await curfew.ended(childRunId(run.id));
    assert.equal(own.timeout_ms, timeoutMs);
    assert.ok(["timed_out", "cancelled"].includes(own.status), own.status);
    await aborted(path);
  }
});

test("inherit_budget: a child gets at most the remaining time of its parent, otherwise its own timeout", async () => {
  const long = { ...doubling(), timeout: "1h" };
  const short = { ...doubling(), timeout: "5s" };
  const inheriting = (child: WorkflowDocument) => callWorkflow(child, { workflow: { timeouts: { inherit_budget: true } } });
  const timeoutOf = async (documents: WorkflowDocument[]) => {
    const run = await runAllToEnd(documents, { n: 1 });
    assertCompleted(run);
    return (await curfew.run(childRunId(run.id))).timeout_ms ?? Number.NaN;
  };
  assert.equal(await timeoutOf([long, callWorkflow(long)]), 3_600_000);
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
  const run = await runAllToEnd([recursive()], { n: 5 });
  assertCompleted(run);
  assert.deepEqual(run.output, { calls: 5 });
});

test("calls may be 16 deep", async () => {
  const document = recursive();
  const deepest = await runAllToEnd([document], { n: 15 });
  assertCompleted(deepest);
  assert.deepEqual(deepest.output, { calls: 15 });
  const run = await curfew.ended(await curfew.start(document.id, { n: 16 }));
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "workflows may not call each other more than 16 deep");
});

test("an unknown child is refused when the parent is stored", async () => {
  const parent = callWorkflow(doubling());
  const response = await curfew.api("PUT", `/v1/workflows/${parent.id}`, parent);
  assert.equal(response.status, 422, response.text);
  assert.deepEqual([response.json.error.details[0].pointer, response.json.error.details[0].code], [
    "/nodes/0/workflow_id",
    "unknown_reference",
  ]);
});

test("a run keeps the child versions it started with", async () => {
  const key = freshId("k");
  const child = oneTask([set({ says: "old" })]);
  const parent = workflow({
    nodes: [{ id: "first", task_id: "first" }, { id: "call", workflow_id: child.id }],
    tasks: [{ id: "first", steps: [request({ url: "${input.url}" })] }],
    transitions: [{ from_node_id: "first", to_node_id: "call" }],
    output_mapping: "${state.call.says}",
  });
  const id = await curfew.storeAndStart([child, parent], { url: `${peer.url}/held/${key}` });
  await reached(`/held/${key}`);
  await curfew.store({ ...oneTask([set({ says: "new" })]), id: child.id });
  peer.release(key);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, "old");
  assert.equal((await curfew.run(`${id}~t2`)).version, 1);
});

test("ten parallel children are joined", async () => {
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
  const run = await runAllToEnd([child, parent], { numbers });
  assertCompleted(run);
  assert.deepEqual(run.output, numbers.map((n) => 2 * n));
});

test("branches that a join cancels are cancelled with their children", async () => {
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
  const id = await curfew.storeAndStart([fast, slow, parent], { url: peer.url + path, n: 1 });
  await reached(path);
  peer.release(key);
  assertCompleted(await curfew.ended(id));
  const losing = (await curfew.tokens(id)).find((token) => token.node_id === "slow");
  assert.equal(losing?.status, "cancelled");
  assert.equal((await curfew.ended(`${id}~${losing?.id}`)).status, "cancelled");
  await aborted(path);
});

test("parent and child survive a restart and find each other again", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
  /** One process. Attempts are checked every second: only its alarm wakes the child. */
  const during = async <T>(work: (instance: Curfew) => Promise<T>): Promise<T> => {
    const instance = await startCurfew({ persistTo: directory, vars: { CURFEW_WATCH_MS: "1000" } });
    try {
      return await work(instance);
    } finally {
      await instance.dispose();
    }
  };
  try {
    const waitsForSignal = workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }], output_mapping: "${state.rest}" });
    const asking = oneRequest("${input.url}", { workflow: { output_mapping: "${state.work.body.count}" } });
    const path = `/hang-first/${freshId("k")}/1`;
    const [waits, works] = await during(async (instance): Promise<[string, string]> => {
      const waits = await instance.storeAndStart([waitsForSignal, callWorkflow(waitsForSignal)], {});
      await until("the child to wait", async () => {
        const response = await instance.api("GET", `/v1/runs/${childRunId(waits)}`);
        return response.status === 200 && response.json.status === "waiting";
      });
      const works = await instance.storeAndStart([asking, callWorkflow(asking)], { url: peer.url + path });
      await reached(path);
      return [waits, works];
    });
    await during(async (instance) => {
      const response = await instance.api("POST", `/v1/runs/${childRunId(waits)}/signals/go`, { after: "the restart" });
      assert.equal(response.status, 200, response.text);
      assert.deepEqual((await instance.ended(waits)).output, { after: "the restart" });
      // The call was in flight when the process was killed: the child repeats it.
      const run = await instance.ended(works);
      assertCompleted(run);
      assert.equal(run.output, 2);
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** A run that waits for the signal `go`. */
const waitsForSignal = () => workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }], output_mapping: "${state.rest}" });

test("callers cannot choose the id of a child", async () => {
  const child = await stored(waitsForSignal());
  for (const run_id of ["a~t1", "a~", "~", ".", "..", "a%7Et1"]) {
    const response = await curfew.api("POST", `/v1/workflows/${child.id}/runs`, { run_id });
    assert.deepEqual([response.status, response.json.error.pointer], [422, "/run_id"], `${run_id}: ${response.text}`);
  }
  for (const path of ["/v1/runs/a~", "/v1/runs/~", "/v1/runs/a~~b"]) {
    assert.equal((await curfew.api("GET", path)).status, 400, path);
  }
});

test("a child is read and controlled by its id, also percent-encoded", async () => {
  const child = waitsForSignal();
  const id = await curfew.storeAndStart([child, callWorkflow(child)]);
  const written = childRunId(id).replace("~", "%7E");
  await until("the child to wait", async () => (await curfew.api("GET", `/v1/runs/${written}`)).json?.status === "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${written}/pause`)).json.status, "paused");
  assert.equal((await curfew.api("POST", `/v1/runs/${written.toLowerCase()}/resume`)).json.status, "waiting");
  assert.equal((await curfew.api("GET", `/v1/runs/${written}/tokens`)).json.items.length, 1);
  assert.equal((await curfew.api("POST", `/v1/runs/${written}/signals/go`, { n: 1 })).status, 200);
  assert.deepEqual((await curfew.ended(id)).output, { n: 1 });
});

test("the id that older builds gave a child may be used by callers, and the parent never touches that run", async () => {
  const [child, stranger] = [waitsForSignal(), await stored(waitsForSignal())];
  const parent = await stored(callWorkflow(await stored(child)));
  const run_id = freshId("parent");
  const taken = await curfew.start(stranger.id, {}, { run_id: `${run_id}.t1` });
  await curfew.start(parent.id, {}, { run_id });
  await until("the child to wait", async () => (await curfew.api("GET", `/v1/runs/${childRunId(run_id)}`)).json?.status === "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${run_id}/pause`)).status, 200);
  await until("the child to be paused", async () => (await curfew.run(childRunId(run_id))).status === "paused");
  assert.equal((await curfew.run(taken)).status, "waiting");
  assert.equal((await curfew.api("POST", `/v1/runs/${run_id}/cancel`)).status, 200);
  assert.equal((await curfew.ended(childRunId(run_id))).status, "cancelled");
  assert.equal((await curfew.run(taken)).status, "waiting");
});

test("an existing run with the id of a child fails the token and is not changed", async () => {
  const [child, other] = [await stored(waitsForSignal()), await stored(waitsForSignal())];
  const parent = await stored(callWorkflow(child));
  const run_id = freshId("parent");
  // Such a run cannot be started over the API: it is written to its object as the child of another parent.
  const started = await curfew.start(other.id);
  const stored_version = (await curfew.api("GET", `/v1/workflows/${other.id}`)).json;
  const command = {
    run_id: childRunId(run_id),
    stored: { version: stored_version.version, workflow: { ...stored_version.document, on_timeout: "human_gate" }, tasks: [], node_tasks: [null] },
    input: {},
    request: {},
    parent: { run_id: started, token_id: "t1", epoch: 1, root_run_id: started, depth: 1 },
  };
  const response = await curfew.sendToRun(childRunId(run_id), { start: { command } });
  assert.equal(response.status, 201, response.text);
  await curfew.start(parent.id, {}, { run_id });
  const run = await curfew.ended(run_id);
  assert.deepEqual([run.status, run.error?.code, run.error?.class], ["failed", "child_id_taken", "permanent"]);
  const stranger = await curfew.run(childRunId(run_id));
  assert.deepEqual([stranger.status, stranger.parent], ["waiting", { run_id: started, token_id: "t1" }]);
  // Messages of a run that is not its parent change nothing either.
  const refused = async (request: unknown) => {
    const { status, json } = await curfew.sendToRun(childRunId(run_id), request);
    return [status, json.error.code];
  };
  const sender = { run_id, token_id: "t1" };
  assert.deepEqual(await refused({ cancel_child: { reason: "run_cancelled", sender } }), [409, "not_the_parent"]);
  assert.deepEqual(await refused({ hold_child: { number: 1, held: true, sender } }), [409, "not_the_parent"]);
  assert.deepEqual(await refused({ hold_child: { number: 1, held: true } }), [400, "invalid_request"]);
  assert.equal((await curfew.run(childRunId(run_id))).status, "waiting");
});
