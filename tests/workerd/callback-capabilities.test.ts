// The capability of a callback is checked before a run's object wakes: a guess costs one response, always the same.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freshId } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

const options = { entry: "tests/workerd/workers/counting-coordinator.mjs", vars: { CURFEW_SUSPEND_MS: "60000" } };

let curfew: Curfew;
let peer: Peer;
before(async () => {
  peer = await startPeer();
  curfew = await startCurfew(options);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const ask = {
  id: "ask",
  kind: "http_request",
  execution: { mode: "async" },
  implementation: { method: "POST", url: "${input.url}", body: { bring_to: "${callback.url}" } },
};

const asyncWorkflow = (more: object = {}) => ({
  id: freshId("async"),
  timeout: "1m",
  on_timeout: "fail",
  nodes: [{ id: "ask", action_id: "ask" }],
  actions: [ask],
  output_mapping: "${state.ask}",
  ...more,
});

const calling = (workflowId: string, more: object = {}) => ({
  id: freshId("parent"),
  timeout: "1m",
  on_timeout: "fail",
  nodes: [{ id: "call", workflow_id: workflowId, ...more }],
  output_mapping: "${state.call}",
});

/** A path of the peer, and the nth capability that a request to it brought. */
function freshPath() {
  const path = `/ok/${freshId("c")}`;
  const capability = async (nth = 0): Promise<string> => {
    const seen = await until("the request at the peer", () => peer.seen(path)[nth]);
    return new URL(JSON.parse(seen.body).bring_to).pathname.split("/").at(-1)!;
  };
  return { input: { url: peer.url + path }, capability };
}

const callBack = (at: Curfew, capability: string) => at.api("POST", `/v1/callbacks/${capability}`, { output: { n: 7 } });
const loads = async (at: Curfew): Promise<unknown> => (await at.api("GET", "/loads")).json;

/** Starts a run and returns it with its capability, once the run waits for its callback. */
async function suspendedRun(at: Curfew = curfew, document = asyncWorkflow()) {
  await at.store(document);
  const { input, capability } = freshPath();
  const id = await at.start(document.id, input);
  const issued = await capability();
  await until("the run to wait", async () => (await at.run(id)).status === "waiting");
  return { id, capability: issued };
}

/** All that a caller can see of a response, apart from the moment it was sent. */
const seenOf = ({ status, text, headers }: { status: number; text: string; headers: Headers }) => {
  const { date: _, ...others } = Object.fromEntries(headers);
  return { status, text, headers: others };
};

test("a wrong capability wakes no object, and every one has the same response", async () => {
  const { id, capability } = await suspendedRun();
  const other = await suspendedRun();
  await curfew.store({ id: "plain", timeout: "1m", nodes: [{ id: "a", wait: { signal: "go" } }] } as { id: string });
  const plain = await curfew.start("plain");
  const [run, token, epoch, proof] = capability.split("~");
  const nobody = freshId("nobody");
  const before = await loads(curfew);
  const guesses = [
    "plain",
    "~~~",
    "%00",
    "x".repeat(2_000),
    `${run}~${token}~${epoch}`,
    `${run}~${token}~${epoch}~`,
    `${run}~${token}~${epoch}~${"0".repeat(32)}`,
    `${run}~${token}~${epoch}~${proof!.replace(/.$/, (last) => (last === "0" ? "1" : "0"))}`,
    `${run}~${token}~${epoch}~${proof!.toUpperCase()}`,
    `${run}~${token}~${epoch}~${proof!.split("-").at(-1)}`,
    `${run}~${token}~${epoch}~0${proof}`,
    `${run}~${token}~${epoch}~${proof}~${proof}`,
    `${run}~${token}~${Number(epoch) + 1}~${proof}`,
    `${run}~${token}~0${epoch}~${proof}`,
    `${run}~t2~${epoch}~${proof}`,
    `${run}~t01~${epoch}~${proof}`,
    `${run}~t1~${token}~${epoch}~${proof}`,
    `${other.id}~${token}~${epoch}~${proof}`,
    `${plain}~${token}~${epoch}~${proof}`,
    `${nobody}~${token}~${epoch}~${proof}`,
    `${nobody}.t1~${token}~${epoch}~${"0".repeat(32)}`,
    `${nobody}~t1~${token}~${epoch}~${proof}`,
  ];
  const responses = [];
  for (const guess of guesses) responses.push(seenOf(await callBack(curfew, guess)));
  for (const [index, response] of responses.entries()) assert.deepEqual(response, responses[0], guesses[index]);
  assert.deepEqual([responses[0]!.status, JSON.parse(responses[0]!.text).error.code], [404, "not_found"]);
  assert.deepEqual(await loads(curfew), before, "no object was created or asked");

  const right = await callBack(curfew, capability);
  assert.equal(right.status, 200, right.text);
  assert.deepEqual((await curfew.ended(id)).output, { n: 7 });
  const again = await callBack(curfew, capability);
  assert.deepEqual([again.status, again.json.error.code], [409, "stale_attempt"]);
});

test("a wrong capability is refused before its body is read", async () => {
  const { hostname, port } = new URL(curfew.url);
  const response = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const path = `/v1/callbacks/${freshId("nobody")}~t1~1~${"0".repeat(32)}`;
    // The body is announced, and none of it is sent.
    const headers = { "content-type": "application/json", "content-length": String(1024 * 1024) };
    const sent = httpRequest({ hostname, port, path, method: "POST", headers, timeout: 10_000 }, (reply) => {
      let text = "";
      reply.setEncoding("utf8").on("data", (chunk) => (text += chunk));
      reply.on("end", () => {
        resolve({ status: reply.statusCode, text });
        sent.destroy();
      });
    });
    sent.on("error", reject).on("timeout", () => sent.destroy(new Error("no response before the body was sent")));
    sent.flushHeaders();
  });
  assert.equal(response.status, 404, response.text);
  // A caller that sends its body reads the same response.
  for (const bytes of [1, 1024]) {
    const sent = await curfew.api("POST", `/v1/callbacks/${freshId("nobody")}~t1~1~00`, JSON.stringify("x".repeat(bytes)));
    assert.deepEqual([sent.status, sent.text], [404, response.text]);
  }
});

test("children, their children and later attempts have capabilities that are checked, too", async () => {
  const leaf = asyncWorkflow();
  // The first child of the root fails with its grandchild; the second attempt of the node has a child of its own.
  const middle = calling(leaf.id);
  const root = {
    ...calling(middle.id),
    nodes: [{ id: "call", workflow_id: middle.id }],
    transitions: [{ from_node_id: "call", to_node_id: "call", on: "failure", loop_config: { max_iterations: 1 } }],
  };
  const { input, capability } = freshPath();
  for (const document of [leaf, middle, root]) await curfew.store(document);
  const id = await curfew.start(root.id, input);
  const first = await capability(0);
  assert.match(first, new RegExp(`^${id}~t1~t1~t1~1~`), "a grandchild");
  const failed = await curfew.api("POST", `/v1/callbacks/${first}`, { error: { message: "not this time" } });
  assert.equal(failed.status, 200, failed.text);
  const second = await capability(1);
  assert.match(second, new RegExp(`^${id}~t2~t1~t1~1~`));
  const proof = second.split("~").at(-1);
  const before = await loads(curfew);
  for (const wrong of [`${id}~t1~t1~t1~1~${proof}`, `${id}~t2~t1~1~${proof}`, `${id}~t2~2~t1~t1~1~${proof}`]) {
    assert.equal((await callBack(curfew, wrong)).status, 404, wrong);
  }
  assert.deepEqual(await loads(curfew), before);
  assert.equal((await callBack(curfew, second)).status, 200);
  assert.deepEqual((await curfew.ended(id)).output, { n: 7 });
});

test("a child of a second attempt, which has the attempt in its id, can be called back", async () => {
  const leaf = asyncWorkflow({ timeout: "1m" });
  const root = calling(leaf.id, { timeout: "1s", on_timeout: "retry", max_retries: 1 });
  const { input, capability } = freshPath();
  const id = await curfew.storeAndStart([leaf, root], input);
  const second = await capability(1);
  assert.match(second, new RegExp(`^${id}~t1~2~t1~1~`));
  // Within the second of the second attempt.
  assert.equal((await callBack(curfew, second)).status, 200);
  assert.deepEqual((await curfew.ended(id)).output, { n: 7 });
});

test("runs that an event started, and restarted runs, can be called back", async () => {
  const event = freshId("asked");
  const { input, capability } = freshPath();
  await curfew.store(asyncWorkflow({ trigger: { event } }));
  const published = await curfew.api("POST", `/v1/events/${event}`, input);
  const id: string = published.json.runs[0].id;
  const first = await capability(0);
  const restarted = await curfew.api("POST", `/v1/runs/${id}/restart`, {});
  assert.equal(restarted.status, 200, restarted.text);
  const second = await capability(1);
  const stale = await callBack(curfew, first);
  assert.deepEqual([stale.status, stale.json.error.code], [409, "stale_attempt"]);
  assert.equal((await callBack(curfew, second)).status, 200);
  assert.deepEqual((await curfew.ended(id)).output, { n: 7 });
});

test("a run's secret is neither shown nor logged", async () => {
  const { id } = await suspendedRun();
  const [{ value: key }] = await curfew.sql("SELECT value FROM settings WHERE name = 'callback_key'");
  assert.match(key, /^[0-9a-f]{64}$/);
  const visible = await curfew.visibleText(id);
  assert.ok(!visible.includes("secret") && !visible.includes(key), visible);
});

/** The snapshot of `asyncWorkflow()`, for a start that an earlier build sends: it has no secret. */
function startOfEarlierBuild(id: string, input: unknown) {
  const { actions: _, ...workflow } = asyncWorkflow();
  const stored = { version: 1, workflow, tasks: [{ id: "ask", steps: [{ ref: "ask", action: ask }] }], node_tasks: [0] };
  return { start: { command: { run_id: id, stored, input, request: {} } } };
}

async function runOfEarlierBuild(at: Curfew) {
  const { input, capability } = freshPath();
  const id = freshId("earlier");
  const started = await at.sendToRun(id, startOfEarlierBuild(id, input));
  assert.equal(started.status, 201, started.text);
  return { id, capability: await capability() };
}

test("the capability of a run that an earlier build started works until callback_older_until", async () => {
  const [open, closed] = await Promise.all([startCurfew(options), startCurfew(options)]);
  try {
    await open.sql("UPDATE settings SET value = ?1 WHERE name = 'callback_older_until'", [String(Date.now() + 60_000)]);
    const older = await runOfEarlierBuild(open);
    const [run, token, epoch, proof] = older.capability.split("~");
    assert.match(proof!, /^[0-9a-f]{32}$/);
    const unknown = seenOf(await callBack(open, "plain"));
    const guess = `${run}~${token}~${epoch}~${"0".repeat(32)}`;
    for (const wrong of [guess, `${freshId("nobody")}~t1~1~${proof}`]) assert.deepEqual(seenOf(await callBack(open, wrong)), unknown);
    const newer = await suspendedRun(open);
    assert.deepEqual(seenOf(await callBack(open, `${newer.capability}0`)), unknown);
    assert.equal((await callBack(open, newer.capability)).status, 200);
    assert.equal((await callBack(open, older.capability)).status, 200);
    assert.deepEqual((await open.ended(older.id)).output, { n: 7 });

    const late = await runOfEarlierBuild(closed);
    const loaded = await loads(closed);
    assert.deepEqual(seenOf(await callBack(closed, late.capability)), unknown);
    assert.deepEqual(await loads(closed), loaded);
  } finally {
    await Promise.all([open.dispose(), closed.dispose()]);
  }
});

test("after the key was lost, callback_older_until lets the objects check what was issued before", async () => {
  const persistTo = mkdtempSync(join(tmpdir(), "curfew-callbacks-"));
  const set = (at: Curfew, name: string, value: string) => at.sql("UPDATE settings SET value = ?2 WHERE name = ?1", [name, value]);
  const during = async <T>(use: (at: Curfew) => Promise<T>): Promise<T> => {
    const at = await startCurfew({ ...options, persistTo, unreplayed: true });
    try {
      return await use(at);
    } finally {
      await at.dispose();
    }
  };
  try {
    const { id, capability } = await during((at) => suspendedRun(at));
    await during(async (at) => {
      await set(at, "callback_key", "0f".repeat(32));
      assert.equal((await callBack(at, capability)).status, 404);
      await set(at, "callback_older_until", String(Date.now() + 60_000));
    });
    await during(async (at) => {
      assert.equal((await callBack(at, capability)).status, 200);
      assert.deepEqual((await at.ended(id)).output, { n: 7 });
    });
  } finally {
    rmSync(persistTo, { recursive: true, force: true });
  }
});

test("without the key nothing is woken, and the caller is to repeat the callback", async () => {
  const at = await startCurfew({ ...options, unreplayed: true });
  try {
    const guess = `${freshId("nobody")}~t1~1~1-${"0".repeat(32)}`;
    const refused = async (code: string) => {
      const response = await callBack(at, guess);
      assert.deepEqual([response.status, response.json.error.code], [503, code], response.text);
      assert.ok(Number(response.headers.get("retry-after")) > 0);
      return response;
    };
    await at.api("POST", "/database/off");
    await refused("callback_key_unreadable");
    assert.ok(!at.logs.some((line) => line.includes("nobody")));
    await at.api("POST", "/database/on");
    const [{ value: key }] = await at.sql("SELECT value FROM settings WHERE name = 'callback_key'");
    for (const broken of ["", "0".repeat(63), `${"0".repeat(63)}x`]) {
      await at.sql("UPDATE settings SET value = ?1 WHERE name = 'callback_key'", [broken]);
      await refused("callback_key_unreadable");
    }
    await at.sql("UPDATE settings SET value = ?1 WHERE name = 'callback_key'", [key]);
    assert.equal((await callBack(at, guess)).status, 404);
    // Once read, it is kept.
    await at.api("POST", "/database/off");
    assert.equal((await callBack(at, guess)).status, 404);
    assert.deepEqual(await loads(at), {});
  } finally {
    await at.dispose();
  }
});

test("a database without migrations is a 503 that says which command to run", async () => {
  const at = await startCurfew({ ...options, unreplayed: true });
  try {
    await at.sql("DROP TABLE settings");
    await at.sql("DROP TABLE definitions");
    for (const [method, path] of [["POST", "/v1/callbacks/a~t1~1~1-00"], ["GET", "/v1/workflows"], ["POST", "/v1/workflows/w/runs"]] as const) {
      const response = await at.api(method, path, method === "POST" ? {} : undefined);
      assert.deepEqual([response.status, response.json.error.code], [503, "not_migrated"], path);
      assert.match(response.json.error.message, /wrangler d1 migrations apply curfew/);
    }
  } finally {
    await at.dispose();
  }
});
