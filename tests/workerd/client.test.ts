// The TypeScript client against Curfew itself: every method, errors by class, and from a Worker over a service binding.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { build } from "esbuild";
import { AuthError, ConflictError, createClient, hasCode, InvalidError, NotFoundError, type Client, type Fetch } from "../../client/index.ts";
import { checkAnswer } from "./contract.ts";
import { freshId, oneRequest, workflow } from "./document-builders.ts";
import { ADMIN, compatibility, OPERATE, READ, root, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

const hello = JSON.parse(readFileSync(join(root, "examples/hello.json"), "utf8"));

/** A Worker with the client in it, bound to Curfew. */
async function clientWorker(name: string, token: string) {
  const { outputFiles } = await build({ entryPoints: [join(root, "tests/workerd/workers/client-user.ts")], bundle: true, write: false, format: "esm", target: "es2022", conditions: ["workerd"] });
  const path = `${name}.mjs`;
  return {
    config: {
      name,
      ...compatibility,
      manifest: { mainModule: path, modulesRoot: root, modules: { [path]: { type: "esm" as const, contents: outputFiles[0]!.text } } },
      triggers: [{ type: "fetch" as const, pattern: `*/${name}` }],
      env: { CURFEW: { type: "worker" as const, worker: "curfew" }, CURFEW_TOKEN: { type: "text" as const, value: token } },
    },
  };
}

let curfew: Curfew;
let peer: Peer;
let client: Client;
before(async () => {
  const extraWorkers = await Promise.all([clientWorker("caller", OPERATE), clientWorker("stranger", "some-other-token-0123")]);
  [curfew, peer] = await Promise.all([startCurfew({ vars: roleVars, extraWorkers }), startPeer()]);
  client = clientWith(ADMIN);
  await client.put("workflows", hello);
});
after(async () => {
  await Promise.all([curfew.dispose(), peer.close()]);
});

/** Every answer is compared with the OpenAPI document. */
const checked: Fetch = async (url, init) => {
  const response = await fetch(url, init);
  const text = await response.clone().text();
  checkAnswer(init.method, url.slice(curfew.url.length), { status: response.status, headers: response.headers, text });
  return response;
};
const clientWith = (token: string): Client => createClient({ url: curfew.url, token, fetch: checked });

/** A run that waits at a gate, and the id of the gate. */
async function waitingRun(parts: object = {}): Promise<{ id: string; gate: string }> {
  const gated = workflow({ nodes: [{ id: "ask", gate: { timeout: "60s" } }, { id: "signalled", wait: { signal: "paid" } }], transitions: [{ from_node_id: "ask", to_node_id: "signalled" }], ...parts });
  await client.put("workflows", gated);
  const { id } = await client.start(gated.id);
  const opened = await until("the gate", async () => (await client.events(id)).items.find(({ kind }) => kind === "gate_opened"));
  return { id, gate: opened.gate_id! };
}

test("documents are stored, read and listed", async () => {
  const id = freshId("task");
  const task = { id, steps: [{ action: { kind: "update_context", implementation: { set: { done: true } } } }] };
  assert.deepEqual(await client.put("tasks", task), { id, version: 1, warnings: [] });
  assert.equal((await client.put("tasks", { ...task, name: "Second" })).version, 2);
  assert.equal((await client.read("tasks", id)).version, 2);
  assert.deepEqual((await client.read("tasks", id, { version: 1 })).document, task);
  const listed: string[] = [];
  for await (const item of client.pages((page) => client.list("tasks", { limit: 1, ...page }))) listed.push(item.id);
  assert.ok(listed.includes(id));
});

test("a run is started, read, listed, and shown in every way", async () => {
  const run = await client.start("hello", { run_id: freshId("run"), input: { name: "Ada" } }, { wait_ms: 5_000 });
  assert.deepEqual([run.status, run.output], ["completed", { greeting: "Hello, Ada!" }]);
  assert.equal((await client.run(run.id, { wait_ms: 1_000 })).status, "completed");
  assert.ok((await client.tokens(run.id, { limit: 10 })).items.length > 0);
  const { items: events } = await client.events(run.id, { after: 1 });
  assert.deepEqual([events[0]!.seq, events.at(-1)!.kind], [2, "run_completed"]);
  assert.deepEqual((await client.timeouts(run.id)).items, []);
  assert.deepEqual((await client.notifications(run.id)).items, []);
  assert.ok((await client.deliverable(run.id)).status);
  assert.ok(await client.resumeOptions(run.id));
  await until("the run in the list", async () => (await client.runs({ workflow: "hello", status: ["completed"] })).items.some(({ id }) => id === run.id));
});

test("a batch starts runs, each with an outcome of its own", async () => {
  const runId = freshId("run");
  const { items } = await client.startMany([{ workflow_id: "hello", run_id: runId, input: { name: "Ada" } }, { workflow_id: "no-such-workflow" }]);
  assert.deepEqual(items.map(({ status }) => status), [201, 404]);
  assert.ok("run" in items[0]! && items[0].run.id === runId);
});

test("a gate is listed and decided; a second decision is a conflict that has the first one", async () => {
  const { id, gate } = await waitingRun();
  const listed = await until("the gate in the list", async () => (await client.gates({ limit: 1_000 })).items.find(({ run_id }) => run_id === id));
  assert.equal(listed.id, gate);
  await client.decide(id, gate, { choice: "approve", comment: "fine" });
  const error = await client.decide(id, gate, { choice: "reject" }).catch((error: unknown) => error);
  assert.ok(error instanceof ConflictError && hasCode(error, "gate_closed"));
  assert.equal(error.details?.decision?.choice, "approve");
  await client.signal(id, "paid", { amount: 5 });
  assert.equal((await client.run(id, { wait_ms: 10_000 })).status, "completed");
});

test("controls: pause, resume, extend, cancel", async () => {
  const { id } = await waitingRun();
  assert.equal((await client.pause(id)).status, "paused");
  assert.equal((await client.pause(id)).status, "paused");
  await client.resume(id);
  await assert.rejects(client.resume(id), (error) => hasCode(error, "not_paused"));
  const { timeout_ms: before } = await client.run(id);
  const extended = await client.extend(id, { by_ms: 60_000 });
  assert.equal(extended.timeout_ms, before! + 60_000);
  const limit = Date.now() + 3_600_000;
  await client.extend(id, { until: limit });
  assert.equal((await client.cancel(id, { reason: "the shop is closed" })).status, "cancelled");
  assert.equal((await client.cancel(id)).reason, "the shop is closed");
  await assert.rejects(client.pause(id), (error) => hasCode(error, "run_finished"));
});

test("a run that failed is retried and restarted, and a timeout has its record", async () => {
  const path = `/${freshId("broken")}`;
  peer.route(path, (_, times) => (times < 3 ? { status: 404 } : { body: {} }));
  const failing = oneRequest(peer.url + path);
  await client.put("workflows", failing);
  const { id, status } = await client.start(failing.id, {}, { wait_ms: 10_000 });
  assert.equal(status, "failed");
  await client.retry(id, { mode: "retry_step" });
  assert.equal((await client.run(id, { wait_ms: 10_000 })).status, "failed");
  assert.equal((await client.restart(id)).attempt, 2);
  assert.equal((await client.run(id, { wait_ms: 10_000 })).status, "completed");

  const late = workflow({ timeout: "200ms", on_timeout: "cancel_all", nodes: [{ id: "sleep", wait: { sleep: "30s" } }] });
  await client.put("workflows", late);
  const timedOut = await client.start(late.id, {}, { wait_ms: 10_000 });
  assert.equal(timedOut.status, "timed_out");
  const [line] = (await client.timeouts(timedOut.id)).items;
  const number = Number(line!.recovery_path.split("/").at(-1));
  assert.equal((await client.timeout(timedOut.id, number)).recovery_path, line!.recovery_path);
});

test("a bulk operation is started and followed to its end", async () => {
  const { id } = await waitingRun();
  const { operation_id } = await client.bulk("cancel", { ids: [id], with: { reason: "closed" } });
  const operation = await until("the end of the operation", async () => {
    const operation = await client.operation(operation_id);
    return operation.status === "completed" && operation;
  });
  assert.deepEqual([operation.done, operation.failed], [1, 0]);
  assert.equal((await client.run(id)).status, "cancelled");
});

test("an event starts runs once, and the same key starts no others", async () => {
  const event = freshId("order");
  const triggered = workflow({ trigger: { event }, nodes: [{ id: "only" }] });
  await client.put("workflows", triggered);
  const first = await client.publish(event, { order: 7 }, { key: event });
  const second = await client.publish(event, { order: 7 }, { key: event });
  assert.deepEqual([first.runs[0]!.created, second.runs[0]!.created], [true, false]);
  assert.equal(first.runs[0]!.id, second.runs[0]!.id);
});

test("breakers are listed and reset, and everything else goes through request and raw", async () => {
  assert.ok(Array.isArray((await client.breakers()).items));
  await assert.rejects(client.resetBreaker(freshId("no-breaker")), NotFoundError);
  const health = await client.request("GET", "/healthz");
  assert.equal(health.status, "ok");
  assert.match(await (await client.raw("GET", "/metrics")).text(), /^# HELP /m);
});

test("errors have the class of their code", async () => {
  await assert.rejects(client.run(freshId("no-run")), NotFoundError);
  await assert.rejects(clientWith("a-wrong-token-0123456789").runs(), AuthError);
  await assert.rejects(clientWith(READ).start("hello"), (error) => error instanceof AuthError && error.code === "forbidden");
  const error = await client.put("workflows", { id: "broken", nodes: [{ id: "a", task: "x" }] }).catch((error: unknown) => error);
  assert.ok(error instanceof InvalidError && hasCode(error, "invalid_document"));
  assert.ok(error.details!.some(({ pointer }) => pointer === "/nodes/0/task"), JSON.stringify(error.details));
  await client.start("hello", { run_id: "taken", input: { name: "Ada" } });
  await assert.rejects(client.start("hello", { run_id: "taken", input: { name: "Bob" } }), (error) => error instanceof ConflictError && error.code === "run_exists");
});

test("the first program of docs/client.md prints what happens in a run and its output", async () => {
  const [, program] = /^```ts\n(.*?)^```/ms.exec(readFileSync(join(root, "docs/client.md"), "utf8")) ?? [];
  const { outputFiles } = await build({
    stdin: { contents: program!, loader: "ts", resolveDir: root },
    alias: { "curfew/client": join(root, "client/index.ts") },
    bundle: true,
    write: false,
    format: "esm",
  });
  const env = { ...process.env, CURFEW_URL: curfew.url, CURFEW_TOKEN: ADMIN };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", outputFiles[0]!.text], { env, timeout: 30_000 });
  assert.match(stdout, /^run_started\n.*\nrun_completed\ncompleted \{ greeting: 'Hello, Ada!' \}\n$/s);
});

test("in a Worker the client works over a service binding, and so does watch", async () => {
  const answer = await curfew.api("POST", "/caller", { name: "Ada" });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(answer.json.output, { greeting: "Hello, Ada!" });
  assert.deepEqual([answer.json.kinds[0], answer.json.kinds.at(-1)], ["run_started", "run_completed"]);
  const refused = await curfew.api("POST", "/stranger", { name: "Ada" });
  assert.deepEqual([refused.status, refused.json.code], [502, "unauthorized"]);
});
