// Traces of ended runs at an OTLP receiver, and the trace context that calls carry.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { chainOf, fan, freshId, oneRequest, oneTask, request, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startSdkServer, type SdkServer } from "./mcp-servers.ts";
import { startOtlpReceiver, type OtlpReceiver, type Span } from "./otlp-receiver.ts";
import { startPeer, type Peer, type RecordedRequest } from "./peer.ts";
import { until } from "./poll.ts";

const API_KEY = "otlp-key-0123456789";
const CALLER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
const SAMPLED = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
const NOT_SAMPLED = `00-${CALLER.traceId}-${CALLER.spanId}-00`;

let curfew: Curfew;
/** Without a receiver. */
let untraced: Curfew;
let peer: Peer;
let receiver: OtlpReceiver;
let server: SdkServer;
before(async () => {
  [peer, receiver, server] = await Promise.all([startPeer(), startOtlpReceiver(), startSdkServer({ sessions: true })]);
  const vars = {
    CURFEW_OTLP_URL: receiver.url,
    CURFEW_OTLP_HEADERS: JSON.stringify({ "x-api-key": API_KEY }),
    CURFEW_OTLP_SERVICE: "orders",
    CURFEW_OTLP_REPEAT_MS: "1000",
    CURFEW_RETRY_DELAY_MS: "10",
    CURFEW_DEV: "on",
  };
  [curfew, untraced] = await Promise.all([startCurfew({ vars }), startCurfew()]);
});
after(() => Promise.all([curfew.dispose(), untraced.dispose(), peer.close(), receiver.close(), server.close()]));

/** The spans of a run, once its root span has arrived. */
const traceOf = (runId: string): Promise<Span[]> =>
  until(`the trace of ${runId}`, () => {
    const spans = receiver.spansOf(runId);
    return spans.some(({ name }) => name.startsWith("run ")) && spans;
  });

async function runTraced(document: { id: string }, input: unknown = {}): Promise<{ run: any; spans: Span[] }> {
  const run = await curfew.runToEnd(document, input);
  return { run, spans: await traceOf(run.id) };
}

async function start(on: Curfew, document: { id: string }, traceparent: string, body: object = {}): Promise<any> {
  await on.store(document);
  const reply = await fetch(`${on.url}/v1/workflows/${document.id}/runs?wait_ms=20000`, {
    method: "POST",
    headers: { "content-type": "application/json", traceparent },
    body: JSON.stringify(body),
  });
  return { status: reply.status, ...((await reply.json()) as object) };
}

function named(spans: Span[], name: string): Span {
  const found = spans.filter((span) => span.name === name);
  assert.equal(found.length, 1, `${name} once among ${spans.map((span) => span.name).join(", ")}`);
  return found[0]!;
}

/** Every span has its parent in the trace, except one, and lies inside it. */
function assertTree(spans: Span[], parentOfRoot?: string): void {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  assert.equal(new Set(spans.map((span) => span.traceId)).size, 1, "one trace");
  const roots = spans.filter((span) => !span.parentSpanId || !byId.has(span.parentSpanId));
  assert.deepEqual(roots.map((span) => span.parentSpanId), [parentOfRoot]);
  for (const span of spans) {
    assert.ok(span.start <= span.end, span.name);
    const parent = byId.get(span.parentSpanId ?? "");
    if (parent) assert.ok(parent.start <= span.start && span.end <= parent.end, `${span.name} inside ${parent.name}`);
    for (const event of span.events) assert.ok(span.start <= event.at && event.at <= span.end, `${event.name} in ${span.name}`);
  }
}

const contextOf = (seen: RecordedRequest | undefined): { traceId: string; spanId: string; flags: string } => {
  const match = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(String(seen?.headers["traceparent"]));
  assert.ok(match, `a traceparent, found ${seen?.headers["traceparent"]}`);
  return { traceId: match[1]!, spanId: match[2]!, flags: match[3]! };
};

test("a run with two steps is a trace of run, token, attempt and steps, without its data", async () => {
  const document = oneTask([set({ secret_word: "${input.word}" }, { ref: "note" }), request({ url: `${peer.url}/slow/30?two` }, { ref: "ask" })]);
  const { run, spans } = await runTraced(document, { word: "pineapple" });
  assertCompleted(run);
  assertTree(spans);
  assert.deepEqual(
    spans.map((span) => [span.name, span.kind, span.status]).sort(),
    [
      ["attempt work", "internal", "ok"],
      ["http_request ask", "client", "ok"],
      [`run ${document.id}`, "internal", "ok"],
      ["task work", "internal", "ok"],
      ["update_context note", "internal", "ok"],
    ],
  );
  const root = named(spans, `run ${document.id}`);
  assert.deepEqual(root.attributes, {
    "curfew.run.id": run.id,
    "curfew.workflow.id": document.id,
    "curfew.workflow.version": 1,
    "curfew.attempt": 1,
    "curfew.run.status": "completed",
  });
  assert.equal(root.start, BigInt(run.started_at) * 1_000_000n);
  assert.equal(root.end, BigInt(run.ended_at) * 1_000_000n);
  const step = named(spans, "http_request ask");
  assert.ok(step.end - step.start >= 25_000_000n, "the step took its time");
  assert.equal(step.attributes["curfew.node.id"], "work");
  assert.equal(step.attributes["curfew.token.id"], "t1");
  assert.equal(step.attributes["curfew.attempt"], 1);
  const seen = peer.requests.find(({ query }) => "two" in query);
  assert.deepEqual(contextOf(seen), { traceId: step.traceId, spanId: step.spanId, flags: "01" });
  const sent = receiver.requests.find(({ body }) => body.includes(run.id))!;
  assert.equal(sent.path, "/v1/traces");
  assert.equal(sent.headers["x-api-key"], API_KEY);
  assert.equal(sent.resource["service.name"], "orders");
  assert.ok(!sent.body.includes("pineapple"));
  assert.ok(!curfew.logs.join("\n").includes(API_KEY));
});

test("retries are events of their step, a failure is a status with its code", async () => {
  const flaky = `${peer.url}/flaky/${freshId("trace")}/1/503`;
  const retried = { action: { kind: "http_request", implementation: { url: flaky }, execution: { retry_policy: { max_attempts: 3, initial_delay_ms: 5, jitter: false } } }, ref: "flaky" };
  const { run, spans } = await runTraced(oneTask([retried, request({ url: `${peer.url}/status/404` }, { ref: "gone" })]));
  assert.equal(run.status, "failed");
  assertTree(spans);
  const step = named(spans, "http_request flaky");
  assert.equal(step.attributes["curfew.step.attempts"], 2);
  assert.deepEqual(
    step.events.map(({ name, attributes }) => [name, attributes["curfew.error.class"], attributes["curfew.retry.delay_ms"]]),
    [["retry", "server_error", 5]],
  );
  for (const name of ["http_request gone", "attempt work", "task work", `run ${run.workflow_id}`]) {
    const span = named(spans, name);
    assert.equal(span.status, "error", name);
    assert.equal(span.message, run.error.code, name);
    assert.equal(span.attributes["error.type"], run.error.code, name);
  }
});

test("a timeout that is retried has a span for each attempt, and each call is one of them", async () => {
  const key = freshId("trace");
  const document = oneRequest(`${peer.url}/hang-first/${key}/1`, { node: { timeout_ms: 250, on_timeout: "retry" } });
  const { run, spans } = await runTraced(document);
  assertCompleted(run);
  assertTree(spans);
  const attempts = spans.filter(({ name }) => name === "attempt work").sort((a, b) => Number(a.start - b.start));
  assert.deepEqual(
    attempts.map(({ status, attributes }) => [attributes["curfew.attempt"], status]),
    [[1, "error"], [2, "ok"]],
  );
  const token = named(spans, "task work");
  assert.ok(token.events.some(({ name }) => name === "token_timed_out"), JSON.stringify(token.events.map(({ name }) => name)));
  const calls = peer.seen(`/hang-first/${key}`).map((seen) => contextOf(seen).spanId);
  const steps = spans.filter(({ kind }) => kind === "client").sort((a, b) => Number(a.start - b.start));
  assert.deepEqual(steps.map(({ spanId }) => spanId), calls);
  assert.deepEqual(steps.map(({ parentSpanId }) => parentSpanId), attempts.map(({ spanId }) => spanId));
});

test("a fan-out and its children are one trace", async () => {
  const child = oneRequest(`${peer.url}/ok?of=child`);
  const parent = fan({ spawn: { spawn_count: 3 }, work: { workflow_id: child.id } });
  await curfew.store(child);
  const { run, spans } = await runTraced(parent);
  assertCompleted(run);
  const tokens = spans.filter(({ name }) => name === "workflow work");
  assert.equal(tokens.length, 3);
  const children = await Promise.all(tokens.map((token) => traceOf(String(token.attributes["curfew.child.run.id"]))));
  assertTree([...spans, ...children.flat()]);
  for (const [index, token] of tokens.entries()) {
    assert.equal(named(children[index]!, `run ${child.id}`).parentSpanId, token.spanId);
    assert.equal(named(children[index]!, `run ${child.id}`).attributes["curfew.parent.run.id"], run.id);
  }
  assert.equal(spans.filter(({ name }) => name === "join done").length, 3);
});

test("models and tools have the attributes of the GenAI conventions", async () => {
  const text = `data: {"model":"m-1-2026","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\ndata: [DONE]\n\n`;
  peer.route("/llm/chat/completions", () => ({ headers: { "content-type": "text/event-stream" }, stream: { chunks: [Buffer.from(text)], everyMs: 1, then: "end" } }));
  const from = server.recorded.length;
  const llm = { ref: "ask", action: { kind: "llm_call", implementation: { provider: "openai", base_url: `${peer.url}/llm`, model: "m-1", prompt: "a word" } } };
  const tool = { ref: "sum", action: { kind: "mcp_tool", implementation: { server_url: server.url, tool: "add", arguments: { a: 2, b: 40 } } } };
  const { run, spans } = await runTraced(oneTask([llm, tool]));
  assertCompleted(run);
  assertTree(spans);
  const chat = named(spans, "chat m-1");
  assert.equal(chat.kind, "client");
  const genAi = ({ attributes }: Span) => Object.fromEntries(Object.entries(attributes).filter(([name]) => name.startsWith("gen_ai.")));
  assert.deepEqual(genAi(chat), {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.system": "openai",
    "gen_ai.request.model": "m-1",
    "gen_ai.response.model": "m-1-2026",
    "gen_ai.usage.input_tokens": 7,
    "gen_ai.usage.output_tokens": 3,
  });
  const execute = named(spans, "execute_tool add");
  assert.deepEqual(genAi(execute), { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add" });
  assert.equal(contextOf(peer.seen("/llm").at(-1)).spanId, chat.spanId);
  const calls = server.recorded.slice(from);
  assert.ok(calls.length > 0);
  for (const { headers } of calls) assert.equal(contextOf({ headers } as unknown as RecordedRequest).spanId, execute.spanId);
  const [token] = await curfew.tokens(run.id);
  const steps = (token as any).steps;
  assert.deepEqual(steps[0].gen_ai, { operation: "chat", provider: "openai", request_model: "m-1", response_model: "m-1-2026", input_tokens: 7, output_tokens: 3 });
  assert.deepEqual(steps[1].gen_ai, { operation: "execute_tool", tool: "add" });
});

test("a caller's trace is continued, also by a second start of the same run", async () => {
  const document = oneRequest(`${peer.url}/ok?of=caller`);
  const runId = freshId("traced");
  const run = await start(curfew, document, SAMPLED, { run_id: runId });
  assert.equal(run.status, "completed");
  const spans = await traceOf(runId);
  assertTree(spans, CALLER.spanId);
  assert.equal(spans[0]!.traceId, CALLER.traceId);
  const again = await start(curfew, document, SAMPLED.replaceAll("7", "8"), { run_id: runId });
  assert.equal(again.started_at, run.started_at, "the same run");
  const call = peer.requests.filter(({ query }) => query["of"] === "caller");
  assert.equal(call.length, 1);
  assert.equal(contextOf(call[0]).traceId, CALLER.traceId);
});

test("an event and a batch continue the caller's trace, an emitted event that of its run", async () => {
  const name = freshId("traced-event").replaceAll("-", ".");
  const last = oneTask([set({ done: true })], { workflow: { trigger: { event: `${name}.last` } } });
  const emitting = oneTask([{ ref: "tell", action: { kind: "emit_event", implementation: { name: `${name}.last`, payload: {} } } }], { workflow: { trigger: { event: name } } });
  await Promise.all([curfew.store(last), curfew.store(emitting)]);
  const published = await fetch(`${curfew.url}/v1/events/${name}`, { method: "POST", headers: { "content-type": "application/json", traceparent: SAMPLED }, body: "{}" });
  const [{ id }] = ((await published.json()) as any).runs;
  const first = await traceOf(id);
  assertTree(first, CALLER.spanId);
  const token = named(first, "task work");
  const second = await until("the run of the emitted event", () =>
    receiver.requests.flatMap(({ spans }) => spans).find(({ name: span }) => span === `run ${last.id}`),
  );
  assert.deepEqual([second.traceId, second.parentSpanId], [CALLER.traceId, token.spanId]);

  const item = { workflow_id: last.id, run_id: freshId("batched") };
  await fetch(`${curfew.url}/v1/runs:batch`, { method: "POST", headers: { "content-type": "application/json", traceparent: SAMPLED }, body: JSON.stringify({ items: [item] }) });
  assertTree(await traceOf(item.run_id), CALLER.spanId);
});

test("a trace that its caller does not record is passed on and not exported", async () => {
  const run = await start(curfew, oneRequest(`${peer.url}/ok?of=unsampled`), NOT_SAMPLED);
  assert.equal(run.status, "completed");
  const seen = peer.requests.find(({ query }) => query["of"] === "unsampled");
  assert.equal(seen?.headers["traceparent"], NOT_SAMPLED);
  // The run after it is exported.
  const { spans } = await runTraced(oneTask([set({ done: true })]));
  assert.ok(spans.length > 0);
  assert.deepEqual(receiver.spansOf(run.id), []);
});

test("an invalid traceparent is ignored", async () => {
  for (const header of ["", "no", `${SAMPLED}-00`, SAMPLED.toUpperCase(), `${SAMPLED}, ${SAMPLED}`, SAMPLED.replace("00-", "ff-"), `00-${"0".repeat(32)}-${CALLER.spanId}-01`]) {
    const run = await start(curfew, oneTask([set({ done: true })]), header);
    assert.equal(run.status, "completed", header);
    const spans = await traceOf(run.id);
    assertTree(spans);
    assert.notEqual(spans[0]!.traceId, CALLER.traceId);
  }
});

test("without a receiver a caller's header is passed on as it is, and a run without one sends none", async () => {
  const document = oneTask([request({ url: `${peer.url}/ok?of=untraced` })]);
  await start(untraced, document, SAMPLED);
  await untraced.runToEnd(document);
  const headers = peer.requests.filter(({ query }) => query["of"] === "untraced").map((seen) => seen.headers["traceparent"]);
  assert.deepEqual(headers, [SAMPLED, undefined]);
  const [token] = await untraced.tokens((await untraced.api("GET", `/v1/runs?workflow=${document.id}`)).json.items[0]?.id ?? (await untraced.runToEnd(document)).id);
  assert.deepEqual(Object.keys((token as any).steps[0]).sort(), ["attempts", "duration_ms", "ref", "status"]);
});

test("service calls, commands and async calls carry the context; a written header wins", async () => {
  const echo = { ref: "echo", action: { kind: "service_call", implementation: { binding: "ECHO", path: "/x" } } };
  const shell = { ref: "run", action: { kind: "shell", implementation: { url: `${peer.url}/runner`, command: "true" } } };
  const own = request({ url: `${peer.url}/ok?of=own`, headers: { Traceparent: SAMPLED } }, { ref: "own" });
  peer.route("/runner", () => ({ body: { exit_code: 0, stdout: "", stderr: "" } }));
  const { run, spans } = await runTraced(oneTask([echo, shell, own], { workflow: { output_mapping: "${state.work}" } }));
  assertCompleted(run);
  assert.equal(contextOf(peer.seen("/runner").at(-1)).spanId, named(spans, "shell run").spanId);
  assert.equal(peer.requests.find(({ query }) => query["of"] === "own")?.headers["traceparent"], SAMPLED);

  peer.route("/later", () => ({ body: {} }));
  const later = { ref: "later", action: { kind: "http_request", implementation: { url: `${peer.url}/later`, method: "POST" }, execution: { mode: "async", timeout_ms: 20_000 } } };
  const document = oneTask([later]);
  await curfew.store(document);
  const runId = await curfew.start(document.id);
  const [call] = await until("the async call", () => peer.seen("/later").length > 0 && peer.seen("/later"));
  const callback = new URL(String(call!.headers["curfew-callback-url"]));
  await fetch(curfew.url + callback.pathname, { method: "POST", headers: { "content-type": "application/json" }, body: '{"output": 1}' });
  const traced = await traceOf(runId);
  assertTree(traced);
  assert.equal(contextOf(call).spanId, named(traced, "http_request later").spanId);
});

test("gates and waits are spans", async () => {
  const document = workflow({
    nodes: [{ id: "rest", wait: { sleep_ms: 30 } }, { id: "approve", gate: { prompt: "a word" } }],
    transitions: [{ from_node_id: "rest", to_node_id: "approve" }],
  });
  await curfew.store(document);
  const runId = await curfew.start(document.id);
  const gate = await until("the gate", async () => (await curfew.run(runId) as any).gates?.[0] ?? (await curfew.api("GET", "/v1/gates")).json.items.find((item: any) => item.run_id === runId));
  await curfew.api("POST", `/v1/runs/${runId}/gates/${gate.id}`, { choice: "approve" });
  const spans = await traceOf(runId);
  assertTree(spans);
  const wait = named(spans, "wait rest");
  assert.ok(wait.end - wait.start >= 30_000_000n);
  const open = named(spans, "gate");
  assert.equal(open.parentSpanId, named(spans, "gate approve").spanId);
  assert.equal(open.status, "ok");
});

test("a run that is restarted is one trace with a span for each end", async () => {
  const key = freshId("trace");
  const document = oneRequest(`${peer.url}/flaky/${key}/1/404`);
  const { run, spans } = await runTraced(document);
  assert.equal(run.status, "failed");
  const restarted = await curfew.api("POST", `/v1/runs/${run.id}/restart`, {});
  assert.equal(restarted.status, 200, restarted.text);
  assertCompleted(await curfew.ended(run.id));
  const all = await until("the second end", () => {
    const all = receiver.spansOf(run.id);
    return all.filter(({ name }) => name === `run ${document.id}`).length === 2 && all;
  });
  const [first, second] = all.filter(({ name }) => name === `run ${document.id}`);
  assert.deepEqual([first!.status, second!.status], ["error", "ok"]);
  assert.deepEqual([first!.attributes["curfew.attempt"], second!.attributes["curfew.attempt"]], [1, 2]);
  assert.deepEqual(second!.links, [first!.spanId]);
  assert.equal(second!.traceId, first!.traceId);
  assert.ok(first!.end <= second!.start);
  assertTree(all.filter((span) => !spans.includes(span)));
});

test("a large run is several requests of one trace", async () => {
  const { run, spans } = await runTraced(chainOf(300, { steps: [set({ n: 1 })] }));
  assertCompleted(run);
  await until("all spans", () => receiver.spansOf(run.id).length === 901);
  assertTree(receiver.spansOf(run.id));
  const requests = receiver.requests.filter(({ body }) => body.includes(run.id));
  assert.ok(requests.length >= 2, `${requests.length}`);
  for (const { body, spans } of requests) assert.ok(body.length < 600_000 && spans.length <= 512, `${body.length} ${spans.length}`);
  assert.ok(spans.length > 0);
});

test("while the receiver is down lists are kept, and when it is back every trace arrives", async () => {
  receiver.failWith(503);
  const failed = receiver.failed;
  const document = oneTask([set({ done: true })]);
  await curfew.store(document);
  const ids = await Promise.all(Array.from({ length: 5 }, () => curfew.start(document.id)));
  await Promise.all(ids.map((id) => curfew.ended(id)));
  await until("the list", async () => {
    const { items } = (await curfew.api("GET", `/v1/runs?workflow=${document.id}`)).json;
    return items.length === 5 && items.every((item: any) => item.status === "completed");
  });
  await until("an attempt to send", () => receiver.failed > failed);
  for (const id of ids) assert.deepEqual(receiver.spansOf(id), []);
  receiver.failWith(undefined);
  for (const id of ids) assertTree(await traceOf(id));
});

test("a receiver that hangs is given up, one that refuses gets a trace once", async () => {
  receiver.failWith("hang");
  const failed = receiver.failed;
  const run = await curfew.runToEnd(oneTask([set({ done: true })]));
  await until("the request", () => receiver.failed > failed);
  receiver.failWith(undefined);
  assertTree(await traceOf(run.id));

  receiver.failWith(400);
  const refusedFrom = curfew.logLines("traces_refused").length;
  const refused = await curfew.runToEnd(oneTask([set({ done: true })]));
  await until("the refusal", () => curfew.logLines("traces_refused").length > refusedFrom);
  receiver.failWith(undefined);
  const { spans } = await runTraced(oneTask([set({ done: true })]));
  assert.ok(spans.length > 0);
  assert.deepEqual(receiver.spansOf(refused.id), []);
});

test("the message of an end that comes twice makes no other spans", async () => {
  const { run, spans } = await runTraced(oneTask([set({ done: true })]));
  const page = await curfew.sendToRun(run.id, { read_trace: { cursor: { events: 0 } } });
  assert.equal(page.status, 200);
  const queue = await (curfew.miniflare as any).getQueueProducer("INDEX_QUEUE");
  const probe = (await curfew.sendToRun(run.id, "probe")).json.standing;
  await queue.send(JSON.stringify(probe), { contentType: "text" });
  await runTraced(oneTask([set({ done: true })]));
  const all = receiver.requests.flatMap((request) => request.spans).filter((span) => span.attributes["curfew.run.id"] === run.id);
  assert.deepEqual(new Set(all.map(({ spanId }) => spanId)), new Set(spans.map(({ spanId }) => spanId)));
});
