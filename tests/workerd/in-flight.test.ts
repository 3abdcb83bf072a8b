// Work in flight: it outlives a limit that was extended, ends with a limit that was not, and is missed when its executor is gone.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, oneRequest, oneTask, request, set } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

/** How late a loaded machine may be where the test is about something else. */
const MACHINE_MS = 5_000;
const SILENCE_MS = 1_200;

let curfew: Curfew;
/** Its executor accepts orders and freezes. */
let frozen: Curfew;
/** Its executor says that it lives, and never answers. */
let clockless: Curfew;
let peer: Peer;
before(async () => {
  // Heartbeats of the queue's consumers come too late to be of help here.
  const queue = { CURFEW_QUEUE: "on", CURFEW_HEARTBEAT_MS: "60000" };
  const watched = { CURFEW_HEARTBEAT_MS: "200", CURFEW_CALL_SILENCE_MS: `${SILENCE_MS}`, CURFEW_WATCH_MS: "1000" };
  [curfew, frozen, clockless, peer] = await Promise.all([
    startCurfew({ vars: queue, entry: "tests/workerd/workers/troubled-coordinator.mjs" }),
    startCurfew({ vars: watched, executor: "tests/workerd/workers/frozen-executor.mjs" }),
    startCurfew({ vars: watched, executor: "tests/workerd/workers/stand-in-executor.mjs" }),
    startPeer(),
  ]);
});
after(() => Promise.all([curfew.dispose(), frozen.dispose(), clockless.dispose(), peer.close()]));

async function evict(runId: string): Promise<void> {
  const runs = (await curfew.miniflare.getBindings<{ RUNS: any }>("curfew")).RUNS;
  await runs.get(runs.idFromName(runId)).fetch("http://run/evict").then(
    () => assert.fail("the object answered"),
    () => {},
  );
}

/** Starts a run whose only call is asked for and not answered. */
async function underWay(path: string, lane: string, limits: Record<string, unknown>): Promise<string> {
  const document = oneRequest(peer.url + path, { task: { dispatch: lane }, workflow: limits });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await until("the peer to be asked", () => peer.seen(path).length > 0);
  return id;
}

for (const lane of ["direct", "queue"] as const) {
  // The local queue delivers one batch at a time.
  describe(`a limit, ${lane}`, { concurrency: lane === "direct" ? 4 : 1 }, () => {
    for (const policy of ["cancel_all", "fail"]) {
      test(`${lane}, ${policy}: a call goes on past a limit that was extended, and is made once`, async () => {
        const key = freshId("held");
        const id = await underWay(`/held/${key}`, lane, { timeout: "2s", on_timeout: policy });
        const { timeout_at: oldLimit } = await curfew.run(id);
        assert.equal((await curfew.api("POST", `/v1/runs/${id}/extend`, { by_ms: 60_000 })).status, 200);
        // Past the old limit, its grace and whatever a consumer asks at that moment.
        await until("the old limit to pass", () => Date.now() > oldLimit! + 1_500);
        assert.equal((await curfew.run(id)).status, "running");
        const [seen, ...others] = peer.seen(`/held/${key}`);
        assert.deepEqual([seen?.closedAt, others.length], [undefined, 0], "the call is still open, and the only one");
        peer.release(key);
        const run = await curfew.ended(id);
        assert.equal(run.status, "completed", JSON.stringify(run.error));
        assert.equal(peer.seen(`/held/${key}`).length, 1);
        assert.deepEqual((await curfew.tokens(id)).map((token) => [token.lane, token.epoch]), [[lane, 1]]);
      });
    }

    test(`${lane}: an extended run that meets its new limit has its call closed`, async () => {
      const path = `/hang/${freshId("h")}`;
      const id = await underWay(path, lane, { timeout: "1500ms", on_timeout: "cancel_all" });
      assert.equal((await curfew.api("POST", `/v1/runs/${id}/extend`, { by_ms: 1_500 })).status, 200);
      const seen = await until("the connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
      const run = await curfew.ended(id);
      assert.equal(run.status, "timed_out");
      const late = seen.closedAt! - run.timeout_at!;
      assert.ok(seen.aborted && late >= -50 && late < MACHINE_MS, `closed ${late} ms after the limit`);
      assert.equal(peer.seen(path).length, 1);
    });
  });
}

test("queue: the call is closed at the limit, though its object left memory and no heartbeat is due", async () => {
  const path = `/hang/${freshId("h")}`;
  const id = await underWay(path, "queue", { timeout: "2s", on_timeout: "cancel_all" });
  await evict(id);
  const seen = await until("the connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
  const run = await curfew.ended(id);
  const late = seen.closedAt! - run.timeout_at!;
  assert.ok(seen.aborted && late >= -50 && late < MACHINE_MS, `closed ${late} ms after the limit`);
  assert.equal(peer.seen(path).length, 1);
});

test("direct: a call ends with the object that held it, and the one made in its place ends at the limit", async () => {
  const path = `/hang/${freshId("h")}`;
  const id = await underWay(path, "direct", { timeout: "3s", on_timeout: "cancel_all" });
  await evict(id);
  const first = await until("the first connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
  const run = await curfew.ended(id);
  assert.ok(first.closedAt! < run.timeout_at!, "long before the limit");
  await until("all connections to close", () => peer.seen(path).every(({ closedAt }) => closedAt !== undefined));
  for (const { closedAt } of peer.seen(path)) assert.ok(closedAt! < run.timeout_at! + MACHINE_MS);
});

test("a claim whose answer is lost is made again by the same message, and its task runs once", async () => {
  const path = `/ok/${freshId("c")}`;
  const document = oneRequest(peer.url + path, { task: { dispatch: "queue" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, {}, { run_id: freshId("unheard") });
  const run = await curfew.ended(id);
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(peer.seen(path).length, 1);
  assert.deepEqual((await curfew.tokens(id)).map(({ lane, epoch }) => [lane, epoch]), [["queue", 1]]);
});

describe("the direct lane, without any limit", { concurrency: 3 }, () => {
  const endless = { workflow: { timeout: null } };

  test("an executor that freezes is missed, and its task begins again elsewhere", async () => {
    const document = oneTask([request({ url: "http://nobody.example" })], endless);
    await frozen.store(document);
    const run = await frozen.ended(await frozen.start(document.id, { key: freshId("k") }));
    assert.deepEqual([run.status, run.output], ["completed", "attempt 2"], JSON.stringify(run.error));
    const [token] = await frozen.tokens(run.id);
    const after = token!.started_at! - run.started_at;
    assert.ok(after >= SILENCE_MS - 50, `missed after ${after} ms`);
    assert.ok(frozen.logs.some((line) => line.includes("call_silent") && line.includes(run.id)));
  });

  test("one that says that it lives is left alone", async () => {
    const document = oneTask([set({ a: 1 })], { task: { dispatch: "direct" }, ...endless });
    const run = await clockless.runToEnd(document, { answer_after_ms: 4 * SILENCE_MS });
    assert.deepEqual([run.status, run.output], ["completed", "from the stand-in"]);
    assert.deepEqual((await clockless.tokens(run.id)).map(({ epoch }) => epoch), [1]);
  });
});
