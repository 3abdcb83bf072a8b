// Who did it: the names of callers on runs, events, decisions, documents and in the log, and gates that need a second person.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { callWorkflow, childRunId, freshId, oneTask, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";
import type { EventView, RunView } from "./api-types.ts";

const ADA = "ada-token-0123456789";
const BOB = "bob-token-0123456789";
const tokens = { [ADA]: { name: "ada", roles: ["admin"] }, [BOB]: { name: "bob", roles: ["admin"] } };

let named: Curfew;
/** In development no caller has a name. */
let open: Curfew;
before(async () => {
  [named, open] = await Promise.all([startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify(tokens) } }), startCurfew()]);
});
after(() => Promise.all([named.dispose(), open.dispose()]));

const gated = (gate: Record<string, unknown> = {}): WorkflowDocument =>
  workflow({ nodes: [{ id: "ask", gate }], timeout: "5m", output_mapping: "${state.ask}" });

/** Sends, and fails unless the answer has the status. */
async function send(curfew: Curfew, status: number, method: string, path: string, body?: unknown, token?: string): Promise<ApiResponse> {
  const response = await curfew.api(method, path, body, token);
  assert.equal(response.status, status, `${method} ${path}: ${response.text}`);
  return response;
}

async function started(curfew: Curfew, document: WorkflowDocument, body: object = {}, token?: string): Promise<RunView> {
  await send(curfew, 201, "PUT", `/v1/workflows/${document.id}`, document, token);
  return (await send(curfew, 201, "POST", `/v1/workflows/${document.id}/runs`, body, token)).json;
}

const eventsOf = async (curfew: Curfew, id: string, token?: string): Promise<EventView[]> =>
  (await send(curfew, 200, "GET", `/v1/runs/${id}/events`, undefined, token)).json.items;

/** The audit lines that have these fields. The log arrives a moment after the answer. */
const audited = (curfew: Curfew, fields: Record<string, unknown>) =>
  until(`an audit line with ${JSON.stringify(fields)}`, () => {
    const fits = (line: any) => Object.entries(fields).every(([field, value]) => line[field] === value);
    const lines = curfew.logLines("audit").filter(fits);
    return lines.length > 0 && lines;
  });

test("a run, its events and its decision name their callers, whatever a body says", async () => {
  const run = await started(named, gated(), { by: "mallory", input: {} }, ADA);
  assert.equal(run.started_by, "ada");
  const control = (name: string, body: object, token = BOB) => send(named, 200, "POST", `/v1/runs/${run.id}/${name}`, body, token);
  await control("pause", { by: "mallory" });
  await control("resume", { by: "mallory" });
  await control("extend", { by: "1m" });
  await control("restart", { by: "mallory" });
  await control("gates/g2", { choice: "approve", by: "mallory" });
  const ended: RunView = (await send(named, 200, "GET", `/v1/runs/${run.id}`, undefined, ADA)).json;
  assert.deepEqual([ended.status, ended.started_by, ended.output.by], ["completed", "ada", "bob"]);
  const events = await eventsOf(named, run.id, ADA);
  assert.deepEqual(
    events.filter(({ by }) => by !== undefined).map(({ kind, by, cause }) => [kind, by, cause]),
    [
      ["run_started", "ada", undefined],
      ["run_paused", "bob", "person"],
      ["run_resumed", "bob", "person"],
      ["run_extended", "bob", undefined],
      ["run_restarted", "bob", undefined],
      ["gate_decided", "bob", undefined],
    ],
  );
  for (const [action, by] of [["start", "ada"], ["pause", "bob"], ["resume", "bob"], ["extend", "bob"], ["restart", "bob"], ["decide_gate", "bob"]]) {
    const lines = await audited(named, { action: action!, run_id: run.id });
    assert.deepEqual(lines.map(({ by }: any) => by), [by], `${action}`);
  }
  const conflict = await send(named, 409, "POST", `/v1/runs/${run.id}/gates/g2`, { choice: "approve" }, ADA);
  assert.equal(conflict.json.error.details.decision.by, "bob");
  assert.ok(!named.logs.join("\n").includes("mallory"));
});

test("cancel and retry name their callers", async () => {
  const broken = oneTask([{ action: { kind: "assert", implementation: { condition: "false", message: "no" } } }]);
  const run = await started(named, broken, {}, ADA);
  await until("the failure", async () => (await send(named, 200, "GET", `/v1/runs/${run.id}`, undefined, ADA)).json.status === "failed");
  await send(named, 200, "POST", `/v1/runs/${run.id}/retry`, { mode: "escalate", by: "mallory" }, BOB);
  await send(named, 200, "POST", `/v1/runs/${run.id}/cancel`, { by: "mallory" }, ADA);
  const events = (await eventsOf(named, run.id, ADA)).filter(({ kind }) => ["run_retried", "run_cancelled"].includes(kind));
  assert.deepEqual(events.map(({ kind, by }) => [kind, by]), [["run_retried", "bob"], ["run_cancelled", "ada"]]);
});

test("a refused request, a repeated start and a read leave no audit line", async () => {
  const document = workflow({ nodes: [{ id: "listen", wait: { signal: "go" } }], timeout: "5m" });
  const run = await started(named, document, { run_id: freshId("quiet") }, ADA);
  await send(named, 200, "POST", `/v1/workflows/${run.workflow_id}/runs`, { run_id: run.id }, BOB);
  await send(named, 200, "GET", `/v1/runs/${run.id}`, undefined, BOB);
  await send(named, 409, "POST", `/v1/runs/${run.id}/resume`, {}, BOB);
  await send(named, 200, "POST", `/v1/runs/${run.id}/signals/go`, { word: "hush" }, BOB);
  await audited(named, { action: "signal", run_id: run.id, by: "bob" });
  const lines = named.logLines("audit").filter(({ run_id }) => run_id === run.id);
  assert.deepEqual(lines.map(({ action, by }) => [action, by]), [["start", "ada"], ["signal", "bob"]]);
  assert.ok(!JSON.stringify(lines).includes("hush"), "never a payload");
});

test("a stored version says who stored it", async () => {
  const document = gated();
  const path = `/v1/workflows/${document.id}`;
  await send(named, 201, "PUT", path, document, ADA);
  await send(named, 200, "PUT", path, document, BOB);
  assert.equal((await send(named, 200, "GET", path, undefined, BOB)).json.created_by, "ada", "unchanged content is not stored");
  await send(named, 201, "PUT", path, { ...document, tags: ["new"] }, BOB);
  assert.equal((await send(named, 200, "GET", path, undefined, ADA)).json.created_by, "bob");
  assert.equal((await send(named, 200, "GET", `${path}?version=1`, undefined, ADA)).json.created_by, "ada");
  const listed = (await send(named, 200, "GET", "/v1/workflows?limit=1000", undefined, ADA)).json.items;
  const { id, version, created_by } = listed.find((item: { id: string }) => item.id === document.id);
  assert.deepEqual([id, version, created_by], [document.id, 2, "bob"]);
  const lines = await until("both lines", () => {
    const lines = named.logLines("audit").filter((line) => line.document === `workflows/${document.id}`);
    return lines.length === 2 && lines;
  });
  assert.deepEqual(lines.map(({ action, version, by }: any) => [action, version, by]), [["put_document", 1, "ada"], ["put_document", 2, "bob"]]);
});

test("a version that an older build stored has no name", async () => {
  const id = freshId("older");
  await named.sql("INSERT INTO definitions (kind, id, version, content, created_at) VALUES ('workflows', ?, 1, ?, 5)", [id, JSON.stringify({ ...gated(), id })]);
  const found = (await send(named, 200, "GET", `/v1/workflows/${id}`, undefined, ADA)).json;
  assert.deepEqual(Object.keys(found).sort(), ["created_at", "document", "id", "version"]);
});

test("children and runs of events have the name that led to them", async () => {
  const event = freshId("paid");
  const emitter = oneTask([{ action: { kind: "emit_event", implementation: { name: event, payload: {} } } }]);
  const heard = workflow({ nodes: [{ id: "a" }], trigger: { event } });
  for (const document of [emitter, heard]) await send(named, 201, "PUT", `/v1/workflows/${document.id}`, document, BOB);
  const run = await started(named, callWorkflow(emitter), {}, ADA);
  const child: RunView = await until("the child", async () => {
    const response = await named.api("GET", `/v1/runs/${childRunId(run.id)}`, undefined, BOB);
    return response.status === 200 && response.json;
  });
  assert.equal(child.started_by, "ada");
  const runsOf = async (): Promise<{ id: string }[]> => (await send(named, 200, "GET", `/v1/runs?workflow=${heard.id}`, undefined, BOB)).json.items;
  const [emitted] = await until("the run of the event", async () => {
    const items = await runsOf();
    return items.length > 0 && items;
  });
  assert.equal((await send(named, 200, "GET", `/v1/runs/${emitted!.id}`, undefined, BOB)).json.started_by, "ada");
  // A payload is free: its `by` names nobody.
  const published = await send(named, 202, "POST", `/v1/events/${event}`, { by: "mallory" }, BOB);
  const [{ id }] = published.json.runs;
  assert.equal((await send(named, 200, "GET", `/v1/runs/${id}`, undefined, ADA)).json.started_by, "bob");
  const [line] = await audited(named, { action: "publish_event", event_name: event });
  assert.deepEqual([line.by, line.key], ["bob", published.json.key]);
});

test("a reset of a breaker says who", async () => {
  const key = freshId("dep");
  const url = `http://127.0.0.1:1/${key}`;
  const call = oneTask([{ action: { kind: "http_request", implementation: { url }, execution: { breaker: key, retry_policy: { max_attempts: 1 } } } }]);
  const run = await started(named, call, {}, ADA);
  await until("the failure", async () => (await send(named, 200, "GET", `/v1/runs/${run.id}`, undefined, ADA)).json.status === "failed");
  await send(named, 200, "POST", `/v1/breakers/${key}/reset`, { by: "mallory" }, BOB);
  const [line] = await audited(named, { action: "reset_breaker", breaker: key });
  assert.equal(line.by, "bob");
  await send(named, 404, "POST", `/v1/breakers/${freshId("unknown")}/reset`, {}, BOB);
});

test("with four_eyes another person decides", async () => {
  const run = await started(named, gated({ four_eyes: true }), {}, ADA);
  const path = `/v1/runs/${run.id}/gates/g1`;
  for (const by of [undefined, "bob"]) {
    const refused = await send(named, 403, "POST", path, { choice: "approve", by }, ADA);
    assert.equal(refused.json.error.code, "four_eyes");
    assert.match(refused.json.error.message, /"ada" started this run/);
  }
  const decided = await send(named, 200, "POST", path, { choice: "approve" }, BOB);
  assert.deepEqual([decided.json.status, decided.json.output.by], ["completed", "bob"]);
});

test("with four_eyes the starter of the topmost run may not decide in a child", async () => {
  const child = gated({ four_eyes: true });
  await send(named, 201, "PUT", `/v1/workflows/${child.id}`, child, BOB);
  const run = await started(named, callWorkflow(child), {}, ADA);
  const path = `/v1/runs/${childRunId(run.id)}`;
  await until("the child", async () => (await named.api("GET", path, undefined, ADA)).json.status === "waiting");
  assert.equal((await send(named, 403, "POST", `${path}/gates/g1`, { choice: "approve" }, ADA)).json.error.code, "four_eyes");
  await send(named, 200, "POST", `${path}/gates/g1`, { choice: "approve" }, BOB);
});

test("in development a body names its sender", async () => {
  const run = await started(open, gated({ four_eyes: true }), { by: "ada" });
  assert.equal(run.started_by, "ada");
  const control = (status: number, name: string, body: object) => send(open, status, "POST", `/v1/runs/${run.id}/${name}`, body);
  await control(200, "pause", { by: "bob" });
  await control(200, "resume", {});
  const events = (await eventsOf(open, run.id)).filter(({ kind }) => kind.startsWith("run_"));
  assert.deepEqual(events.map(({ kind, by }) => [kind, by]), [["run_started", "ada"], ["run_paused", "bob"], ["run_resumed", undefined]]);
  assert.equal((await control(403, "gates/g1", { choice: "approve", by: "ada" })).json.error.code, "four_eyes");
  const unnamed = await control(403, "gates/g1", { choice: "approve" });
  assert.deepEqual([unnamed.json.error.code, /has no name/.test(unnamed.json.error.message)], ["four_eyes", true]);
  for (const by of [5, "", "x".repeat(257), "a\u0000b"]) {
    assert.equal((await control(422, "gates/g1", { choice: "approve", by })).json.error.pointer, "/by", JSON.stringify(by));
    assert.equal((await control(422, "pause", { by })).json.error.pointer, "/by");
    const refused = await send(open, 422, "POST", `/v1/workflows/${run.workflow_id}/runs`, { by });
    assert.equal(refused.json.error.pointer, "/by");
  }
  assert.equal((await control(200, "gates/g1", { choice: "approve", by: "bob" })).json.output.by, "bob");
  const anonymous = await started(open, gated({ four_eyes: true }));
  assert.equal(anonymous.started_by, undefined);
  const refused = await send(open, 403, "POST", `/v1/runs/${anonymous.id}/gates/g1`, { choice: "approve", by: "bob" });
  assert.match(refused.json.error.message, /started without a name/);
  const [line] = await audited(open, { action: "start", run_id: anonymous.id });
  assert.equal(line.by, null);
});

test("a caller reads its own name, roles and workflows", async () => {
  const all = ["read", "start", "decide", "operate", "admin"];
  assert.deepEqual((await send(named, 200, "GET", "/v1/me", undefined, ADA)).json, { name: "ada", roles: all, workflows: null });
  assert.deepEqual((await send(open, 200, "GET", "/v1/me")).json, { name: null, roles: all, workflows: null });
  await send(named, 401, "GET", "/v1/me");
  await send(named, 405, "POST", "/v1/me", {}, ADA);
});
