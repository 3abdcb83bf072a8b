// Deadlines of runs and attempts: policies, exact messages, and that work is really stopped.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { TimeoutView } from "./api-types.ts";
import { freshId, markAction, markNode, oneRequest, oneTask, request, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer, type RecordedRequest } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew({ vars: { CURFEW_RETRY_DELAY_MS: "50" } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** Two cores run workerd, this process and another test file, so deadlines may fire late. */
const LATENESS_MS = 1_500;

function assertOnTime(what: string, dueAt: number | null, at: number | null | undefined): void {
  assert.ok(dueAt !== null && at !== null && at !== undefined, `${what}: due ${dueAt}, came ${at}`);
  const late = at - dueAt;
  assert.ok(late >= -50 && late < LATENESS_MS, `${what} came ${late} ms after its deadline`);
}

const hangingPath = () => `/hang/${freshId("h")}`;

/** The one request to `path`, once its connection is closed. */
const closedRequest = (path: string): Promise<RecordedRequest> =>
  until(`the connection to ${path} to close`, () => {
    const [seen] = peer.seen(path);
    return seen?.closedAt !== undefined && seen;
  });

test("workflow, cancel_all: tokens and run time out, the connection is closed", async () => {
  const path = hangingPath();
  const document = oneRequest("${input.url}", { workflow: { timeout: undefined, timeout_ms: 900, on_timeout: "cancel_all" } });
  const run = await curfew.runToEnd(document, { url: peer.url + path });
  assert.equal(run.status, "timed_out");
  assert.equal(run.timeout_at, run.started_at + 900);
  assertOnTime("the run's end", run.timeout_at, run.ended_at);
  const [token] = await curfew.tokens(run.id);
  assert.equal(token?.status, "timed_out");
  assert.equal(token?.reason, "workflow_timeout");
  assertOnTime("the close of the connection", run.timeout_at, (await closedRequest(path)).closedAt);
});

test("workflow, fail: the run fails with the exact message", async () => {
  const path = hangingPath();
  const document = oneRequest("${input.url}", { workflow: { timeout: "1.2s", on_timeout: "fail" } });
  const run = await curfew.runToEnd(document, { url: peer.url + path });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "Workflow execution timed out after 1.2s");
  assert.equal(run.error?.class, "timeout");
  assertOnTime("the run's end", run.timeout_at, run.ended_at);
  const [token] = await curfew.tokens(run.id);
  assert.equal(token?.status, "timed_out");
  assertOnTime("the close of the connection", run.timeout_at, (await closedRequest(path)).closedAt);
});

test("the default timeout of a run is an hour; the document or the start may set it", async () => {
  const document = oneTask([request({ url: "${input.url}" })], { workflow: { timeout: undefined } });
  await curfew.store(document);
  const input = { url: `${peer.url}/ok` };
  const usual = await curfew.ended(await curfew.start(document.id, input));
  assert.equal(usual.timeout_ms, 3_600_000);
  const shorter = await curfew.ended(await curfew.start(document.id, { url: peer.url + hangingPath() }, { timeout_ms: 400 }));
  assert.equal(shorter.status, "timed_out");
  assert.equal(shorter.timeout_ms, 400);
});

test("node, fail: the token times out with the exact message and fails the run", async () => {
  const path = hangingPath();
  const document = oneRequest("${input.url}", { node: { timeout_ms: 600, on_timeout: "fail" } });
  const run = await curfew.runToEnd(document, { url: peer.url + path });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "step work timed out: context deadline exceeded");
  assert.equal(run.error?.class, "timeout");
  assert.equal(run.error?.node_id, "work");
  const [token] = await curfew.tokens(run.id);
  assert.equal(token?.status, "timed_out");
  assert.equal(token?.timeout_ms, 600);
  assertOnTime("the token's end", token?.timeout_at ?? null, token?.ended_at);
  assertOnTime("the close of the connection", token?.timeout_at ?? null, (await closedRequest(path)).closedAt);
});

test("node, fail: a timeout route continues the run", async () => {
  const run = await curfew.runToEnd(
    workflow({
      nodes: [{ id: "ask", task_id: "ask", timeout: "400ms" }, markNode("late"), markNode("failed"), markNode("fine")],
      actions: ["late", "failed", "fine"].map(markAction),
      tasks: [{ id: "ask", steps: [request({ url: "${input.url}" })] }],
      transitions: [
        { from_node_id: "ask", to_node_id: "fine" },
        { from_node_id: "ask", to_node_id: "failed", on: "failure" },
        { from_node_id: "ask", to_node_id: "late", on: "timeout", condition: "error.class == 'timeout'" },
      ],
    }),
    { url: peer.url + hangingPath() },
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  const tokens = await curfew.tokens(run.id);
  assert.deepEqual(
    tokens.map((token) => [token.node_id, token.status]),
    [["ask", "timed_out"], ["late", "completed"]],
  );
});

test("node, retry: each attempt has the whole time, and attempts are counted", async () => {
  const path = hangingPath();
  const document = oneRequest("${input.url}", { node: { timeout_ms: 400, on_timeout: "retry", max_retries: 2 } });
  const run = await curfew.runToEnd(document, { url: peer.url + path });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "step work timed out: context deadline exceeded");
  const [token] = await curfew.tokens(run.id);
  assert.equal(token?.status, "timed_out");
  assert.equal(token?.retry_count, 2);
  assert.equal(token?.epoch, 3);
  const requests = peer.seen(path);
  assert.equal(requests.length, 3);
  for (const seen of requests) await until("its connection to close", () => seen.closedAt);
  // Not the times at the peer: on a busy machine a request may take a while to arrive.
  const records = (await curfew.api("GET", `/v1/runs/${run.id}/timeouts`)).json.items;
  const elapsed = records.map((record: { timeout_event: { elapsed_ms: number } }) => record.timeout_event.elapsed_ms);
  assert.equal(elapsed.length, 3);
  for (const ms of elapsed) assert.ok(ms >= 400, `an attempt was interrupted after ${ms} ms`);
});

test("the list of records has the state, and is as long as fits", async () => {
  const large = "x".repeat(300 * 1024);
  const document = workflow({
    nodes: [{ id: "keep", output_mapping: { "state.large": "${input.large}" } }, { id: "work", task_id: "ask", timeout_ms: 100, on_timeout: "retry", max_retries: 3 }],
    tasks: [{ id: "ask", steps: [request({ url: "${input.url}" })] }],
    transitions: [{ from_node_id: "keep", to_node_id: "work" }],
  });
  const run = await curfew.runToEnd(document, { url: peer.url + hangingPath(), large });
  assert.equal(run.status, "failed");
  const records: TimeoutView[] = [];
  const lengths: number[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const { json } = await curfew.api("GET", `/v1/runs/${run.id}/timeouts${cursor && `?cursor=${cursor}`}`);
    lengths.push(json.items.length);
    records.push(...json.items);
    cursor = json.next_cursor;
  }
  assert.deepEqual(lengths, [3, 1]);
  for (const record of records) {
    assert.equal(record.context_for_resume.state.large, large);
    assert.equal(record.last_known_state.node_id, "work");
    const { why, ...single } = (await curfew.api("GET", record.recovery_path)).json;
    assert.deepEqual(record, single);
    assert.equal(why.limit.layer, "execution");
  }
});

test("node, retry: a later attempt may succeed", async () => {
  const document = oneRequest("${input.url}", {
    node: { timeout_ms: 500, on_timeout: "retry" },
    workflow: { output_mapping: "${state.work.body.count}" },
  });
  const run = await curfew.runToEnd(document, { url: `${peer.url}/hang-first/${freshId("k")}/1` });
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(run.output, 2);
  const [token] = await curfew.tokens(run.id);
  assert.equal(token?.retry_count, 1);
  assert.equal(token?.status, "completed");
});

test("the node's timeout takes precedence over the task's, the task's over the action's", async () => {
  const step = {
    action: { kind: "http_request", implementation: { url: "${input.url}" }, execution: { timeout_ms: 700, retry_policy: { max_attempts: 1 } } },
  };
  const cases: [document: ReturnType<typeof oneTask>, timeoutMs: number][] = [
    [oneTask([step]), 700],
    [oneTask([step], { task: { timeout_ms: 500 } }), 500],
    [oneTask([step], { task: { timeout_ms: 500 }, node: { timeout_ms: 300 } }), 300],
  ];
  for (const [document, timeoutMs] of cases) {
    const run = await curfew.runToEnd(document, { url: peer.url + hangingPath() });
    const [token] = await curfew.tokens(run.id);
    assert.equal(token?.status, "timed_out");
    assert.equal(token?.timeout_ms, timeoutMs);
  }
});

test("a step has its own deadline within its task", async () => {
  const path = hangingPath();
  const document = oneTask([request({ url: "${input.url}" }, { ref: "the-call", timeout_override_ms: 300 })], {
    task: { timeout: "20s" },
  });
  const startedAt = Date.now();
  const run = await curfew.runToEnd(document, { url: peer.url + path });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.class, "timeout");
  assert.ok(Date.now() - startedAt < 10_000);
  await closedRequest(path);
});

test("an inner deadline ends with the run", async () => {
  const document = oneRequest("${input.url}", { node: { timeout: "1h" }, workflow: { timeout: "600ms" } });
  const run = await curfew.runToEnd(document, { url: peer.url + hangingPath() });
  assert.equal(run.status, "timed_out");
  const [token] = await curfew.tokens(run.id);
  assert.equal(token?.reason, "workflow_timeout", "at the same moment the run's deadline wins");
});

test("a live run shows its deadlines", async () => {
  const path = hangingPath();
  const document = oneRequest("${input.url}", { node: { timeout: "20s" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: peer.url + path });
  await until("the request at the peer", () => peer.seen(path).length === 1);
  const { json: run } = await curfew.api("GET", `/v1/runs/${id}`);
  assert.equal(run.status, "running");
  const dueTimes: number[] = run.deadlines.map((deadline: { due_at: number }) => deadline.due_at);
  assert.ok(dueTimes.includes(run.timeout_at), JSON.stringify(run.deadlines));
  const ofToken = run.deadlines.find((deadline: { token_id?: string }) => deadline.token_id === "t1");
  assert.equal(ofToken?.node_id, "work", JSON.stringify(run.deadlines));
  await curfew.api("POST", `/v1/runs/${id}/cancel`);
  await closedRequest(path);
});

test("work that ends in time is not affected", async () => {
  const document = oneRequest("${input.url}", { node: { timeout: "10s" } });
  const run = await curfew.runToEnd(document, { url: `${peer.url}/slow/300` });
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(peer.seen("/slow/300")[0]?.aborted, false);
});
