// The three lanes end to end: inline, direct and queue; and attempts whose executor or consumer fails.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { chainOf, fan, freshId, oneRequest, oneTask, request, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

const echo = { action: { kind: "service_call", implementation: { binding: "ECHO", path: "/" } } };
const LANES = ["inline", "direct", "queue"] as const;

let curfew: Curfew;
/** Its executor disconnects, sends garbage or hangs. */
let crashing: Curfew;
let peer: Peer;
before(async () => {
  const vars = { CURFEW_QUEUE: "on", CURFEW_HEARTBEAT_MS: "200" };
  const executor = "tests/workerd/workers/crashing-executor.mjs";
  [curfew, crashing, peer] = await Promise.all([startCurfew({ vars }), startCurfew({ vars, executor }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), crashing.dispose(), peer.close()]));

/** A chain whose output is its last result. */
const chain = (count: number, task: Record<string, unknown>): WorkflowDocument => ({
  ...chainOf(count, task, { output_mapping: { "state.last": "${result}" } }),
  output_mapping: "${state.last}",
});

// A node writes the token that ends, with its result, and the next token. Inline, they are the same token.
for (const [lane, rows] of [
  ["direct", 2],
  ["inline", 1],
] as const) {
  test(`a node in lane ${lane} costs ${rows === 1 ? "a row" : `${rows} rows`}`, async () => {
    const written = async (nodes: number): Promise<number> => {
      const ids = Array.from({ length: nodes }, (_, index) => `n${index}`);
      const document = workflow({
        nodes: ids.map((id) => ({ id, task_id: "step" })),
        transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
        tasks: [{ id: "step", dispatch: lane, steps: [set({ n: 1 })] }],
      });
      await curfew.store(document);
      const run = await curfew.api("POST", `/v1/workflows/${document.id}/runs?wait_ms=20000`, { input: {} });
      assertCompleted(run.json);
      return Number(/rows_written=(\d+)/.exec(run.headers.get("x-curfew-bill") ?? "")?.[1]);
    };
    assert.equal((await written(25)) - (await written(5)), 20 * rows);
  });
}

const lanesOf = async (runId: string, at: Curfew = curfew) => [...new Set((await at.tokens(runId)).flatMap(({ lane }) => lane ?? []))];

// An invocation may call 32 Workers, and one invocation of the executor serves the orders of many nodes.
for (const [what, nodes, steps, calls] of [
  ["40 nodes without calls", 40, [set({ n: 1 })], 1],
  ["40 nodes of one call", 40, [echo], 2],
  ["20 nodes of three calls", 20, [echo, echo, echo], 2],
] as const) {
  test(`${what} need ${calls} invocations of the executor`, async () => {
    const document = chain(nodes, { dispatch: "direct", steps: [...steps] });
    await curfew.store(document);
    const run = await curfew.api("POST", `/v1/workflows/${document.id}/runs?wait_ms=20000`, { input: {} });
    assertCompleted(run.json);
    assert.match(run.headers.get("x-curfew-bill") ?? "", new RegExp(`executor_calls=${calls}$`));
  });
}

for (const lane of LANES) {
  test(`a task takes the lane ${lane}, and its token shows it`, async () => {
    const run = await curfew.runToEnd(oneTask([set({ twice: "${input.n + input.n}" })], { task: { dispatch: lane } }), { n: 21 });
    assertCompleted(run);
    assert.deepEqual(run.output, { twice: 42 });
    const [token] = await curfew.tokens(run.id);
    assert.deepEqual([token?.lane, token?.epoch, token?.status], [lane, 1, "completed"]);
    assert.ok(token!.started_at! >= token!.dispatched_at!);
  });

  // Longer than one message between coordinator and executor. Each length splits the text at another character.
  for (const length of [250_000, 250_001]) {
    test(`an input and a result of ${length} characters and more pass the lane ${lane} unchanged`, async () => {
      const text = `${"a".repeat(length)}${"\u{1F600}".repeat(20_000)}\n"é"`;
      const run = await curfew.runToEnd(oneTask([set({ text: "${input.text}" })], { task: { dispatch: lane } }), { text });
      assertCompleted(run);
      assert.ok(run.output.text === text, "the text came back as another");
    });
  }

  test(`300 parallel tokens take the lane ${lane}, each once`, async () => {
    const document = fan({
      spawn: { spawn_count: 300 },
      work: { task_id: "tell", input_mapping: { index: "${_branch.index}" }, output_mapping: { "_branch.output": "${result.index}" } },
      workflow: { tasks: [{ id: "tell", dispatch: lane, steps: [set({ index: "${input.index}" })] }] },
    });
    const run = await curfew.runToEnd(document);
    assertCompleted(run);
    assert.deepEqual(run.output, Array.from({ length: 300 }, (_, index) => index));
    const tokens = (await curfew.tokens(run.id)).filter(({ node_id }) => node_id === "work");
    assert.deepEqual([...new Set(tokens.map((token) => `${token.lane} ${token.epoch}`))], [`${lane} 1`]);
  });
}

test("the lane depends on a task's actions and timeout", async () => {
  const cases: [WorkflowDocument, string][] = [
    [oneTask([set({ x: 1 })]), "inline"],
    [oneRequest(`${peer.url}/ok`), "direct"],
    [oneRequest(`${peer.url}/ok`, { workflow: { timeout: "1h" }, node: { timeout: "30s" } }), "direct"],
    [oneRequest(`${peer.url}/ok`, { workflow: { timeout: "1h" }, node: { timeout: "2m" } }), "queue"],
    [oneRequest(`${peer.url}/ok`, { workflow: { timeout: "14m" } }), "queue"],
    // Longer than a consumer may run.
    [oneRequest(`${peer.url}/ok`, { workflow: { timeout: "1h" } }), "direct"],
    [oneRequest(`${peer.url}/ok`, { workflow: { timeout: "1h" }, node: { timeout: "15m", dispatch: "queue" } }), "direct"],
    [oneRequest(`${peer.url}/ok`, { workflow: { timeout: null } }), "direct"],
    [oneRequest(`${peer.url}/ok`, { workflow: { timeout: "1h" }, node: { dispatch: "direct" } }), "direct"],
  ];
  for (const [document, lane] of cases) {
    const run = await curfew.runToEnd(document);
    assertCompleted(run);
    assert.deepEqual(await lanesOf(run.id), [lane], JSON.stringify(document));
  }
});

test("a task with calls cannot be forced into the inline lane", async () => {
  const document = oneRequest(`${peer.url}/ok`, { node: { dispatch: "inline" } });
  const { status, json } = await curfew.api("PUT", `/v1/workflows/${document.id}`, document);
  assert.equal(status, 422);
  const problems = json.error.details.problems ?? json.error.details;
  assert.ok(JSON.stringify(problems).includes("inline_not_pure") && JSON.stringify(problems).includes("/nodes/0/dispatch"), JSON.stringify(json));
});

test("a chain of 60 calls makes them one by one, each once", async () => {
  const path = `/ok/${freshId("c")}`;
  const run = await curfew.runToEnd(chain(60, { dispatch: "direct", steps: [request({ url: peer.url + path })] }));
  assertCompleted(run);
  assert.equal(peer.seen(path).length, 60);
  assert.deepEqual(run.counts, { completed: 60 });
  assert.ok((await curfew.tokens(run.id)).every(({ epoch }) => epoch === 1));
});

test("200 branches with calls take several invocations, each once", async () => {
  const path = `/ok/${freshId("c")}`;
  const urls = Array.from({ length: 200 }, (_, n) => `${peer.url}${path}?n=${n}`);
  const run = await curfew.runToEnd(fan({}), { urls });
  assertCompleted(run);
  assert.deepEqual(run.output, urls.map((_, n) => String(n)));
  assert.equal(peer.seen(path).length, 200);
});

test("450 inline tasks, more than one decision runs, make no call", async () => {
  const run = await curfew.runToEnd(chain(450, { steps: [set({ x: 1 })] }));
  assertCompleted(run);
  assert.deepEqual(await lanesOf(run.id), ["inline"]);
});

test("a slow task does not delay a fast one in the same invocation", async () => {
  const key = freshId("slow");
  const urls = [0, 1, 2, 3, 4, 5].map((n) => (n === 2 ? `${peer.url}/held/${key}?n=2` : `${peer.url}/ok?n=${n}`));
  const document = fan({});
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls });
  await until("five to have arrived", async () => (await curfew.run(id)).counts["waiting_for_siblings"] === 5);
  assert.equal((await curfew.run(id)).counts["executing"], 1);
  peer.release(key);
  assertCompleted(await curfew.ended(id));
});

describe("an executor that is killed during its work", { concurrency: 6 }, () => {
  for (const lane of ["direct", "queue"] as const) {
    for (const fault of ["break", "garbage", "other", "hang"]) {
      test(`${lane}, ${fault}`, async () => {
        const document = oneTask([request({ url: "http://nobody.example" })], {
          task: { dispatch: lane },
          node: { timeout: "2s", on_timeout: "retry", max_retries: 1 },
        });
        await crashing.store(document);
        const run = await crashing.ended(await crashing.start(document.id, { key: freshId("k"), fault }));
        assertCompleted(run);
        assert.equal(run.output, "attempt 2");
        const [token] = await crashing.tokens(run.id);
        assert.deepEqual([token?.lane, token?.epoch, token?.retry_count], [lane, 2, fault === "hang" ? 1 : 0]);
      });
    }
  }

  test("one order of a shared invocation fails the others, and all are repeated", async () => {
    const keys = Array.from({ length: 6 }, () => freshId("k"));
    const document = fan({
      spawn: { foreach: { collection: "input.items", item_var: "item" } },
      work: { action_id: "ask", input_mapping: "${item}" },
    });
    await crashing.store(document);
    const items = keys.map((key, index) => ({ key, fault: index === 3 ? "break" : "hang" }));
    // Orders that would hang are repeated because their invocation is gone.
    const run = await crashing.ended(await crashing.start(document.id, { items }));
    assertCompleted(run);
    assert.deepEqual(run.output, keys.map(() => "attempt 2"));
  });
});

describe("the queue", { concurrency: 4 }, () => {
  const queued = (url: string, more: Record<string, unknown> = {}) => oneRequest(url, { task: { dispatch: "queue" }, ...more });

  test("a cancelled task stops at its next heartbeat", async () => {
    const path = `/hang/${freshId("h")}`;
    const document = queued(peer.url + path);
    await curfew.store(document);
    const id = await curfew.start(document.id);
    await until("the request at the peer", () => peer.seen(path).length > 0);
    assert.equal((await curfew.run(id)).counts["executing"], 1);
    assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`, {})).status, 200);
    const seen = await until("the connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
    assert.equal(seen.aborted, true);
    assert.equal((await curfew.run(id)).status, "cancelled");
  });

  test("the executor stops at the deadline that counts from the claim", async () => {
    const path = `/hang/${freshId("h")}`;
    const run = await curfew.runToEnd(queued(peer.url + path, { node: { timeout: "700ms" } }));
    assert.equal(run.status, "failed");
    assert.equal(run.error?.code, "execution_timeout");
    const [token] = await curfew.tokens(run.id);
    assert.equal(token?.timeout_at, token!.started_at! + 700);
  });

  test("a run's object distinguishes attempts", async () => {
    const path = `/held/${freshId("k")}`;
    const document = queued(peer.url + path);
    await curfew.store(document);
    const id = await curfew.start(document.id);
    await until("the request at the peer", () => peer.seen(path).length > 0);
    const statusOf = async (kind: string, body: object): Promise<number> => (await curfew.sendToRun(id, { [kind]: body })).status;
    // The same message again: the attempt is claimed already and does not run twice.
    assert.equal(await statusOf("claim", { token_id: "t1", epoch: 1 }), 409);
    assert.equal(await statusOf("heartbeat", { token_id: "t1", epoch: 1 }), 200);
    for (const kind of ["claim", "heartbeat", "report_lost"]) {
      assert.equal(await statusOf(kind, { token_id: "t1", epoch: 2, message: "" }), 409, kind);
      assert.equal(await statusOf(kind, { token_id: "t9", epoch: 1, message: "" }), 409, kind);
    }
    assert.equal(await statusOf("report", { token_id: "t1", epoch: 2, status: "completed", output: 1, steps: [] }), 409);
    assert.equal(await statusOf("report", { nonsense: true }), 400);
    peer.release(path.slice(6));
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(path).length, 1);
    assert.equal((await curfew.events(id, "late_result_discarded")).length, 1);
  });

  test("a request of another build changes nothing", async () => {
    const path = `/held/${freshId("k")}`;
    const document = queued(peer.url + path);
    await curfew.store(document);
    const id = await curfew.start(document.id);
    const body = { cancel: {} };
    for (const url of ["http://run/cancel", "http://run/signals/go", "http://run/requests/1"]) {
      const response = await curfew.sendToRun(id, body, url);
      assert.deepEqual([response.status, response.json.error.code], [503, "other_build"], url);
    }
    assert.equal((await curfew.run(id)).status, "running");
    assert.equal((await curfew.sendToRun(id, body)).status, 200);
    assert.equal((await curfew.ended(id)).status, "cancelled");
  });

  test("a repeated message runs its task once", async () => {
    const path = `/held/${freshId("k")}`;
    const document = queued(peer.url + path);
    await curfew.store(document);
    const id = await curfew.start(document.id);
    await until("the request at the peer", () => peer.seen(path).length > 0);
    const { TASK_QUEUE: queue } = await curfew.miniflare.getBindings<{ TASK_QUEUE: any }>("curfew");
    const notification = JSON.stringify({ run_id: id, token_id: "t1", epoch: 1 });
    await queue.send(notification, { contentType: "text" });
    await queue.send("no notification at all", { contentType: "text" });
    await queue.send(JSON.stringify({ run_id: "gone", token_id: "t1", epoch: 1 }), { contentType: "text" });
    peer.release(path.slice(6));
    assertCompleted(await curfew.ended(id));
    // After them in the queue: when this one is done, they have been handled.
    assertCompleted(await curfew.runToEnd(queued(`${peer.url}/ok`)));
    assert.equal(peer.seen(path).length, 1);
    assert.deepEqual((await curfew.tokens(id)).map(({ epoch }) => epoch), [1]);
  });

  test("nothing is claimed during a pause, and the resume sends the message again", async () => {
    const path = `/ok/${freshId("k")}`;
    const document = workflow({
      nodes: [{ id: "first", action_id: "wait" }, { id: "second", task_id: "call" }],
      transitions: [{ from_node_id: "first", to_node_id: "second" }],
      actions: [{ id: "wait", kind: "http_request", implementation: { url: "${input.url}" } }],
      tasks: [{ id: "call", dispatch: "queue", steps: [request({ url: peer.url + path })] }],
    });
    await curfew.store(document);
    const key = freshId("k");
    const id = await curfew.start(document.id, { url: `${peer.url}/held/${key}` });
    await until("the request at the peer", () => peer.seen(`/held/${key}`).length > 0);
    await curfew.api("POST", `/v1/runs/${id}/pause`, {});
    peer.release(key);
    await until("the first to be done", async () => (await curfew.run(id)).counts["pending"] === 1);
    assert.equal(peer.seen(path).length, 0);
    await curfew.api("POST", `/v1/runs/${id}/resume`, {});
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(path).length, 1);
  });
});
