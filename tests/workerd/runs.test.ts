// The API of runs: start, idempotency, reading, listing, cancelling.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, markAction, markNode, oneRequest, oneTask, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const greeting = () => oneTask([set({ greeting: "Hello, ${input.name}!" })], { workflow: { tags: ["test", "greeting"] } });

test("a run goes from start to output", async () => {
  const document = greeting();
  await curfew.store(document);
  const started = await curfew.api("POST", `/v1/workflows/${document.id}/runs`, { input: { name: "Ada" } });
  assert.equal(started.status, 201, started.text);
  const run = await curfew.ended(started.json.id);
  assert.equal(run.status, "completed");
  assert.deepEqual(run.output, { greeting: "Hello, Ada!" });
  assert.deepEqual(run.input, { name: "Ada" });
  assert.deepEqual(run.context.state, { work: { greeting: "Hello, Ada!" } });
  assert.equal(run.workflow_id, document.id);
  assert.equal(run.version, 1);
  assert.equal(run.error, null);
  assert.deepEqual(run.counts, { completed: 1 });
  assert.deepEqual(run.deadlines, []);
  assert.deepEqual(run.tags, ["test", "greeting"]);
  assert.equal(run.root_run_id, run.id);
  assert.equal(run.attempt, 1);
  assert.equal(run.timeout_ms, 30_000);
  assert.equal(run.timeout_at, run.started_at + 30_000);
  assert.ok(run.ended_at !== null && run.ended_at >= run.started_at);
  assert.equal(run.duration_ms, run.ended_at - run.started_at);
});

test("the output is the context's output without an output mapping", async () => {
  const run = await curfew.runToEnd(
    workflow({
      nodes: [{ id: "work", action_id: "a", output_mapping: { "output.deep.value": "${result.visited}", "state.kept": 7 } }],
      actions: [markAction("a")],
    }),
  );
  assert.deepEqual(run.output, { deep: { value: "a" } });
  assert.deepEqual(run.context, { state: { kept: 7 }, output: { deep: { value: "a" } } });
});

test("now is the moment of the decision, and inside a task that of its step", async () => {
  const before = Date.now();
  for (const dispatch of ["inline", "direct"]) {
    const steps = [
      { ref: "slow", action: { kind: "http_request", implementation: { url: `${peer.url}/slow/60?at=\${now}` } } },
      set({ first: "${now}", total: "${[1, 2, 2].distinct().sum()}" }),
    ];
    const document = oneTask(dispatch === "direct" ? steps : steps.slice(1), {
      task: { dispatch },
      node: { input_mapping: { at: "${now}" } },
      workflow: { output_mapping: { task: "${state.work}", end: "${now}", start: "${run.started_at}" } },
    });
    const run = await curfew.runToEnd(document);
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    const { task, end, start } = run.output;
    assert.equal(task.total, 3);
    assert.ok(before <= start && start <= task.first && task.first <= end && end <= Date.now(), JSON.stringify(run.output));
    if (dispatch === "direct") assert.ok(task.first - start >= 55, `${task.first - start} ms`);
    assert.equal(end, run.ended_at, "the decision that ends the run");
  }
});

test("a start is idempotent", async () => {
  const document = greeting();
  await curfew.store(document);
  const path = `/v1/workflows/${document.id}/runs`;
  const request = { run_id: freshId("Run.X_"), input: { name: "Ada" } };
  const first = await curfew.api("POST", path, request);
  assert.equal(first.status, 201, first.text);
  assert.equal(first.json.id, request.run_id);
  const second = await curfew.api("POST", path, request);
  assert.equal(second.status, 200, second.text);
  assert.equal(second.json.id, request.run_id);

  const other = await curfew.api("POST", path, { ...request, input: { name: "Grace" } });
  assert.equal(other.status, 409, other.text);
  assert.equal(other.json.error.code, "run_exists");
  assert.deepEqual((await curfew.ended(request.run_id)).input, { name: "Ada" });
});

test("of many equal concurrent starts exactly one creates the run", async () => {
  const document = oneRequest("${input.url}");
  await curfew.store(document);
  const key = freshId("once");
  const request = { run_id: freshId("run"), input: { url: `${peer.url}/count/${key}` } };
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => curfew.api("POST", `/v1/workflows/${document.id}/runs`, request)),
  );
  assert.deepEqual(answers.map((response) => response.status).sort(), [...Array(9).fill(200), 201]);
  await curfew.ended(request.run_id);
  assert.equal(peer.seen(`/count/${key}`).length, 1);
});

test("unknown workflows, versions and runs are a 404", async () => {
  const document = greeting();
  await curfew.store(document);
  const unknown = await curfew.api("POST", "/v1/workflows/no-such-workflow/runs", { input: {} });
  assert.equal(unknown.status, 404, unknown.text);
  assert.equal(unknown.json.error.code, "not_found");
  const version = await curfew.api("POST", `/v1/workflows/${document.id}/runs`, { input: {}, version: 9 });
  assert.equal(version.status, 404, version.text);
  for (const path of ["", "/tokens"]) {
    const run = await curfew.api("GET", `/v1/runs/no-such-run${path}`);
    assert.equal(run.status, 404, run.text);
    assert.equal(run.json.error.code, "not_found");
  }
});

test("a run id with invalid characters is refused", async () => {
  const document = greeting();
  await curfew.store(document);
  for (const run_id of ["", "with space", "x".repeat(129), "ümlaut", 7]) {
    const response = await curfew.api("POST", `/v1/workflows/${document.id}/runs`, { run_id, input: { name: "Ada" } });
    assert.ok([400, 422].includes(response.status), `${run_id}: ${response.status} ${response.text}`);
    assert.equal(response.json.error.code, "invalid_request");
  }
});

test("an input that violates the schema starts nothing", async () => {
  const document = {
    ...greeting(),
    input_schema: { type: "object", required: ["name"], properties: { name: { type: "string" } } },
  };
  await curfew.store(document);
  const run_id = freshId("run");
  const response = await curfew.api("POST", `/v1/workflows/${document.id}/runs`, { run_id, input: { name: 7 } });
  assert.equal(response.status, 422, response.text);
  assert.match(response.json.error.code, /^invalid_(input|request)$/);
  assert.equal(response.json.error.pointer, "/input/name");
  assert.equal((await curfew.api("GET", `/v1/runs/${run_id}`)).status, 404);
});

test("wait_ms responds at the end of the run or after that time", async () => {
  const document = oneRequest("${input.url}");
  await curfew.store(document);
  const slow = await curfew.start(document.id, { url: `${peer.url}/slow/600` });
  const askedAt = Date.now();
  const done = await curfew.api("GET", `/v1/runs/${slow}?wait_ms=20000`);
  assert.equal(done.json.status, "completed", done.text);
  assert.ok(Date.now() - askedAt < 10_000, "it answers when the run ends");

  const hanging = await curfew.start(document.id, { url: `${peer.url}/hang` });
  const askedAgainAt = Date.now();
  const waited = await curfew.api("GET", `/v1/runs/${hanging}?wait_ms=300`);
  assert.equal(waited.json.status, "running");
  assert.ok(Date.now() - askedAgainAt >= 290, "it does wait");
  assert.equal((await curfew.api("GET", `/v1/runs/${hanging}?wait_ms=soon`)).status, 400);
  await curfew.api("POST", `/v1/runs/${hanging}/cancel`);
});

test("tokens show the path", async () => {
  const run = await curfew.runToEnd(
    workflow({
      nodes: [markNode("a"), { id: "between" }, markNode("b")],
      actions: [markAction("a"), markAction("b")],
      transitions: [
        { from_node_id: "a", to_node_id: "between" },
        { from_node_id: "between", to_node_id: "b" },
      ],
    }),
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  const tokens = await curfew.tokens(run.id);
  assert.deepEqual(
    tokens.map((token) => [token.id, token.node_id, token.status, token.parent_token_id ?? null]),
    [
      ["t1", "a", "completed", null],
      ["t2", "between", "completed", "t1"],
      ["t3", "b", "completed", "t2"],
    ],
  );
  const [first] = tokens;
  assert.ok(first);
  assert.deepEqual(first.output, { visited: "a" });
  assert.equal(first.epoch, 1);
  assert.equal(first.retry_count, 0);
  assert.equal(first.error, null);
  assert.ok(first.ended_at !== null && first.created_at <= first.ended_at);
  assert.deepEqual(
    first.steps.map((step) => [step.status, step.attempts]),
    [["completed", 1]],
  );
});

test("runs are listed newest first, by workflow, status and tag, page by page", async () => {
  const tag = freshId("tag");
  const document = { ...greeting(), tags: [tag] };
  const failing = { ...oneTask([{ action: { kind: "assert", implementation: { condition: "false", message: "no" } } }]), tags: [tag] };
  await curfew.store(document);
  await curfew.store(failing);
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1) ids.push((await curfew.ended(await curfew.start(document.id, { name: "Ada" }))).id);
  const failed = (await curfew.ended(await curfew.start(failing.id))).id;

  const list = async (query: string): Promise<string[]> => {
    const response = await curfew.api("GET", `/v1/runs?${query}`);
    assert.equal(response.status, 200, response.text);
    return response.json.items.map((item: { id: string }) => item.id);
  };
  const newestFirst = [failed, ...ids.toReversed()];
  await until("the index", async () => {
    const completed = await list(`tag=${tag}&status=completed`);
    return completed.length === 5 && (await list(`tag=${tag}&status=failed`)).length === 1;
  });
  assert.deepEqual(await list(`tag=${tag}`), newestFirst);
  assert.deepEqual(await list(`workflow=${document.id}`), ids.toReversed());
  assert.deepEqual(await list(`tag=${tag}&status=failed`), [failed]);
  assert.deepEqual(await list(`tag=${freshId("no-such-tag")}`), []);

  const paged: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const page = await curfew.api("GET", `/v1/runs?tag=${tag}&limit=4${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    assert.equal(page.status, 200, page.text);
    assert.ok(page.json.items.length <= 4);
    paged.push(...page.json.items.map((item: { id: string }) => item.id));
    assert.ok(paged.length <= 6, "no run comes twice");
    cursor = page.json.next_cursor ?? null;
  }
  assert.deepEqual(paged, newestFirst);

  const [row] = (await curfew.api("GET", `/v1/runs?workflow=${failing.id}`)).json.items;
  assert.equal(row.workflow_id, failing.id);
  assert.equal(row.status, "failed");
});

test("a list refuses invalid parameters", async () => {
  for (const query of ["limit=0", "limit=many", "limit=100000", "status=sleepy", "cursor=%00nonsense"]) {
    const response = await curfew.api("GET", `/v1/runs?${query}`);
    assert.equal(response.status, 400, `${query}: ${response.text}`);
    assert.equal(response.json.error.code, "invalid_request");
  }
});

test("cancel aborts the work in flight", async () => {
  const document = oneRequest("${input.url}");
  await curfew.store(document);
  const path = `/hang/${freshId("cancel")}`;
  const run = await curfew.start(document.id, { url: peer.url + path });
  const [seen] = await until("the request at the peer", () => {
    const found = peer.seen(path);
    return found.length > 0 && found;
  });
  assert.ok(seen);
  const cancelledAt = Date.now();
  const cancelled = await curfew.api("POST", `/v1/runs/${run}/cancel`);
  assert.equal(cancelled.status, 200, cancelled.text);
  const closedAt = await until("the peer's connection to close", () => seen.closedAt, 5_000);
  assert.ok(closedAt - cancelledAt < 2_000, `closed ${closedAt - cancelledAt} ms after the cancel`);

  const ended = await curfew.ended(run);
  assert.equal(ended.status, "cancelled");
  assert.deepEqual(ended.counts, { cancelled: 1 });
  const [token] = await curfew.tokens(run);
  assert.equal(token?.status, "cancelled");

  const again = await curfew.api("POST", `/v1/runs/${run}/cancel`);
  assert.equal(again.status, 200, "cancel is idempotent");
  assert.equal(again.json.status, "cancelled");

  const done = await curfew.runToEnd(greeting(), { name: "Ada" });
  const late = await curfew.api("POST", `/v1/runs/${done.id}/cancel`);
  assert.equal(late.status, 409, late.text);
  assert.equal(late.json.error.code, "run_finished");
  assert.equal((await curfew.api("POST", "/v1/runs/no-such-run/cancel")).status, 404);
});

test("healthz responds", async () => {
  assert.equal((await curfew.api("GET", "/healthz")).status, 200);
});

test("HEAD is GET without the body", async () => {
  const { id } = await curfew.runToEnd(greeting(), { name: "Ada" });
  for (const path of ["/healthz", "/v1/workflows", "/v1/runs", `/v1/runs/${id}`, `/v1/runs/${freshId("nobody")}`, "/v1/events/x"]) {
    const [get, head] = [await curfew.api("GET", path), await curfew.api("HEAD", path)];
    assert.deepEqual([head.status, head.headers.get("content-type"), head.text], [get.status, get.headers.get("content-type"), ""], path);
  }
});
