// A second Worker calls Curfew over its service binding, without a token: its methods do what the API does, in the name of that Worker.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ADMIN, moduleWorker, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { until } from "./poll.ts";

const caller = (name: string, props?: Record<string, unknown>, entrypoint = "Api") =>
  moduleWorker(name, "tests/workerd/workers/rpc-caller.mjs", {
    triggers: [{ type: "fetch", pattern: `*/${name}` }],
    env: { CURFEW: { type: "worker", worker: "curfew", ...(entrypoint ? { exportName: entrypoint } : {}), ...(props ? { props } : {}) } },
  });

let curfew: Curfew;
before(async () => {
  const extraWorkers = [caller("orders", { name: "orders" }), caller("unnamed"), caller("misnamed", { name: "a\nb" }), caller("default", { name: "d" }, "")];
  curfew = await startCurfew({ vars: roleVars, extraWorkers });
  for (const document of [greeting, approval, waiting]) {
    const stored = await curfew.api("PUT", `/v1/workflows/${document.id}`, document, ADMIN);
    assert.equal(stored.status, 201, stored.text);
  }
});
after(() => curfew.dispose());

const greeting = { id: "greeting", nodes: [{ id: "greet", output_mapping: { "output.text": "Hello, ${input.name}!" } }] };
const approval = { id: "approval", nodes: [{ id: "ask", gate: { prompt: "Ship it?", four_eyes: true } }] };
const waiting = { id: "waiting", timeout: "1h", nodes: [{ id: "paid", wait: { signal: "paid" } }] };

async function call(body: unknown, worker = "orders"): Promise<any> {
  const { status, json, text } = await curfew.api("POST", `/${worker}`, body);
  assert.equal(status, 200, text);
  return json;
}

const read = async (path: string) => (await curfew.api("GET", path, undefined, ADMIN)).json;

test("create starts a run, once for each id, and status reads it", async () => {
  const request = { create: { workflow: "greeting", id: "g1", input: { name: "Ada" } }, method: "status", args: [{ wait_ms: 5_000 }] };
  for (let repeated = 0; repeated < 2; repeated += 1) {
    const { id, value } = await call(request);
    assert.deepEqual([id, value.status, value.output], ["g1", "completed", { text: "Hello, Ada!" }]);
  }
  const { id } = await call({ create: { workflow: "greeting", input: { name: "Bob" } } });
  assert.match(id, /^[0-9a-f-]{16,}$/);
});

test("which Worker called is on the run, its events and its decisions", async () => {
  for (const [worker, name] of [["orders", "worker:orders"], ["unnamed", "worker"], ["misnamed", "worker"]] as const) {
    const { id } = await call({ create: { workflow: "waiting" } }, worker);
    await call({ get: id, method: "cancel", args: [{ reason: "a test" }] }, worker);
    const run = await read(`/v1/runs/${id}`);
    assert.deepEqual([run.started_by, run.status], [name, "cancelled"]);
    const { items } = await read(`/v1/runs/${id}/events`);
    assert.equal(items.find(({ kind }: any) => kind === "run_cancelled").by, name);
  }
});

test("a decision is the Worker's own, whatever the body says", async () => {
  const { id } = await call({ create: { workflow: "approval" } }, "unnamed");
  const gate = (await until("the gate", async () => (await read("/v1/gates")).items.find(({ run_id }: any) => run_id === id))).id;
  const own = await call({ get: id, method: "decide", args: [gate, { choice: "approve" }] }, "unnamed");
  assert.equal(own.thrown.code, "four_eyes");
  await call({ get: id, method: "decide", args: [gate, { choice: "approve", comment: "fine" }] });
  const run = await call({ get: id, method: "status", args: [{ wait_ms: 5_000 }] });
  assert.equal(run.value.status, "completed");
  const { items } = await read(`/v1/runs/${id}/events`);
  assert.equal(items.find(({ kind }: any) => kind === "gate_decided").by, "worker:orders");
});

test("signals, pause, resume and extend", async () => {
  const { id } = await call({ create: { workflow: "waiting", timeout: "10m" } });
  assert.equal((await call({ get: id, method: "pause" })).value.status, "paused");
  assert.notEqual((await call({ get: id, method: "resume" })).value.status, "paused");
  const before = (await call({ get: id, method: "status" })).value;
  const extended = (await call({ get: id, method: "extend", args: [{ by: "1h" }] })).value;
  assert.equal(extended.timeout_at - before.timeout_at, 3_600_000);
  await call({ get: id, method: "sendSignal", args: [{ name: "paid", payload: { amount: 7 } }] });
  const { value } = await call({ get: id, method: "status", args: [{ wait_ms: 5_000 }] });
  assert.deepEqual([value.status, value.context.state], ["completed", { paid: { amount: 7 } }]);
});

test("subscribe has the whole history, one event a line, and ends with the run", async () => {
  const { id } = await call({ create: { workflow: "waiting" } });
  const lines = curfew.api("POST", "/orders", { get: id, method: "subscribe" });
  await call({ get: id, method: "sendSignal", args: [{ name: "paid" }] });
  const events = (await lines).text.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(events, (await read(`/v1/runs/${id}/events`)).items);
  const last = events.at(-1);
  assert.equal(last.kind, "run_completed");
  const ends = await curfew.api("POST", "/orders", { get: id, method: "subscribe", args: [{ kinds: ["run_completed"] }] });
  assert.deepEqual(JSON.parse(ends.text), last);
  const nothing = await curfew.api("POST", "/orders", { get: id, method: "subscribe", args: [{ after: last.seq }] });
  assert.deepEqual([nothing.status, nothing.text], [200, ""]);
});

test("a subscription that is cancelled does not count as a watcher for long", async () => {
  const { id } = await call({ create: { workflow: "waiting" } });
  const cancelled = () => call({ get: id, cancelled: true });
  // As many as may watch a run at a time.
  for (let number = 0; number < 100; number += 1) assert.match((await cancelled()).first, /"kind":"run_started"/);
  assert.equal((await cancelled()).thrown.code, "too_many_watchers");
  // The runtime says so when something is written: events, or within a minute the comments.
  await until("a place", async () => {
    await call({ get: id, method: "pause" });
    await call({ get: id, method: "resume" });
    return (await cancelled()).first !== undefined;
  });
  await call({ get: id, method: "cancel" });
});

test("a refusal is thrown with the code and the message of the API", async () => {
  const { thrown } = await call({ get: "no-such-run", method: "status" });
  assert.deepEqual([thrown.name, thrown.code, thrown.status], ["CurfewError", "not_found", 404]);
  assert.match(thrown.message, /^not_found: the run does not exist/);
  for (const [create, expected] of [
    [{ workflow: "no-such-workflow" }, /^not_found: /],
    [{ workflow: "greeting", parameters: {} }, /^invalid_request: .*parameters.*unknown field/],
    [{ workflow: "greeting", id: "a/b" }, /^invalid_request: .*run_id/],
    [{ workflow: "../runs" }, /^invalid_request: /],
    [{}, /workflow, the id of a workflow, is missing/],
  ] as const) {
    for (const worker of ["orders", "default"]) {
      const { thrown } = await call({ create }, worker);
      assert.match(thrown.message, expected);
      assert.deepEqual([thrown.name, thrown.code], ["CurfewError", String(thrown.message).split(":")[0]]);
    }
  }
});

test("arguments are checked as bodies are", async () => {
  for (const id of ["", undefined, ".", ".."]) {
    const { thrown } = await call({ get: id, method: "status" });
    assert.match(thrown.message, /^invalid_request: get: the id of a run (is missing|cannot be)/);
    assert.deepEqual([thrown.code, thrown.status], ["invalid_request", 400]);
  }
  for (const [method, args, expected] of [
    ["status", [{ waitms: 5 }], /status: unknown field "waitms"; it takes an object with wait_ms/],
    ["status", [null], /status: it takes an object with wait_ms/],
    ["sendSignal", ["paid"], /sendSignal: it takes an object with name and payload/],
    ["sendSignal", [], /sendSignal: it takes an object/],
    ["sendSignal", [{}], /sendSignal: name, the name of a signal, is missing/],
    ["sendSignal", [{ name: ".." }], /cannot be "\.\."/],
    ["subscribe", [{ kinds: "run_started" }], /kinds is a list/],
    ["decide", [undefined, { choice: "approve" }], /decide: the id of a gate is missing/],
  ] as const) {
    const { thrown } = await call({ get: "some-run", method, args });
    assert.match(thrown.message, expected, method);
    assert.deepEqual([thrown.name, thrown.code], ["CurfewError", "invalid_request"], method);
  }
});

test("fetch of the entry point for Workers is a request to the API", async () => {
  const own = await call({ fetched: "/v1/me" });
  assert.equal(own.name, "worker:orders");
  const { status } = await curfew.api("POST", "/default", { fetched: "/v1/me" });
  assert.equal(status, 401);
});

test("request is the whole API without a token", async () => {
  const listed = await call({ api: { method: "GET", path: "/v1/workflows" } });
  assert.deepEqual(listed.items.map(({ id }: any) => id), ["approval", "greeting", "waiting"]);
  const stored = await curfew.api("POST", "/orders", { api: { method: "PUT", path: "/v1/workflows/bound", body: { ...greeting, id: "bound" } } });
  assert.equal(stored.status, 201, stored.text);
  assert.equal((await read("/v1/workflows/bound")).created_by, "worker:orders");
});

test("from outside none of it can be reached without a token", async () => {
  for (const path of ["/request", "/create", "/get", "/v1/runs"]) {
    for (const method of ["GET", "POST"]) {
      const { status } = await curfew.api(method, path, method === "POST" ? { workflow: "greeting" } : undefined);
      assert.ok([401, 404, 405].includes(status), `${method} ${path}: ${status}`);
    }
  }
});
