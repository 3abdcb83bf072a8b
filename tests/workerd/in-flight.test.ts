// Work in flight: it continues past a deadline that was extended, ends at one that was not, and is repeated when its executor
// is lost.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, oneRequest, oneTask, request, set } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

/** How late a loaded machine may be in tests that do not measure lateness. */
const MACHINE_MS = 5_000;
const SILENCE_MS = 1_200;

let curfew: Curfew;
/** Its executor accepts orders and freezes. */
let frozen: Curfew;
/** Its executor sends heartbeats and never reports. */
let withoutDeadlines: Curfew;
let peer: Peer;
before(async () => {
  // Heartbeats of the queue's consumers are too rare to matter here.
  const queue = { CURFEW_QUEUE: "on", CURFEW_HEARTBEAT_MS: "60000" };
  const watched = { CURFEW_HEARTBEAT_MS: "200", CURFEW_CALL_SILENCE_MS: `${SILENCE_MS}`, CURFEW_WATCH_MS: "1000" };
  [curfew, frozen, withoutDeadlines, peer] = await Promise.all([
    startCurfew({ vars: queue, entry: "tests/workerd/workers/evicting-coordinator.mjs" }),
    startCurfew({ vars: watched, executor: "tests/workerd/workers/frozen-executor.mjs" }),
    startCurfew({ vars: watched, executor: "tests/workerd/workers/executor-without-deadlines.mjs" }),
    startPeer(),
  ]);
});
after(() => Promise.all([curfew.dispose(), frozen.dispose(), withoutDeadlines.dispose(), peer.close()]));

async function evict(runId: string): Promise<void> {
  const runs = (await curfew.miniflare.getBindings<{ RUNS: any }>("curfew")).RUNS;
  await runs.get(runs.idFromName(runId)).fetch("http://run/evict").then(
    () => assert.fail("the object answered"),
    () => {},
  );
}

/** Starts a run whose only call is in flight. */
async function startInFlight(path: string, lane: string, limits: Record<string, unknown>): Promise<string> {
  const document = oneRequest(peer.url + path, { task: { dispatch: lane }, workflow: limits });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await until("the request at the peer", () => peer.seen(path).length > 0);
  return id;
}

for (const lane of ["direct", "queue"] as const) {
  // The local queue delivers one batch at a time.
  describe(`a deadline, ${lane}`, { concurrency: lane === "direct" ? 4 : 1 }, () => {
    for (const policy of ["cancel_all", "fail"]) {
      test(`${lane}, ${policy}: a call continues past a deadline that was extended, and is made once`, async () => {
        const key = freshId("held");
        const id = await startInFlight(`/held/${key}`, lane, { timeout: "2s", on_timeout: policy });
        const { timeout_at: oldLimit } = await curfew.run(id);
        assert.equal((await curfew.api("POST", `/v1/runs/${id}/extend`, { by_ms: 60_000 })).status, 200);
        // Past the old deadline, its grace and the consumer's next heartbeat.
        await until("the old deadline to pass", () => Date.now() > oldLimit! + 1_500);
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

    test(`${lane}: a call is closed at the extended deadline`, async () => {
      const path = `/hang/${freshId("h")}`;
      const id = await startInFlight(path, lane, { timeout: "1500ms", on_timeout: "cancel_all" });
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

test("queue: the call is closed at the deadline, although its object was evicted and no heartbeat is due", async () => {
  const path = `/hang/${freshId("h")}`;
  const id = await startInFlight(path, "queue", { timeout: "2s", on_timeout: "cancel_all" });
  await evict(id);
  const seen = await until("the connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
  const run = await curfew.ended(id);
  const late = seen.closedAt! - run.timeout_at!;
  assert.ok(seen.aborted && late >= -50 && late < MACHINE_MS, `closed ${late} ms after the limit`);
  assert.equal(peer.seen(path).length, 1);
});

test("direct: a call ends with its evicted object, and the repeated call ends at the deadline", async () => {
  const path = `/hang/${freshId("h")}`;
  const id = await startInFlight(path, "direct", { timeout: "3s", on_timeout: "cancel_all" });
  await evict(id);
  const first = await until("the first connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
  const run = await curfew.ended(id);
  assert.ok(first.closedAt! < run.timeout_at!, "long before the limit");
  await until("all connections to close", () => peer.seen(path).every(({ closedAt }) => closedAt !== undefined));
  for (const { closedAt } of peer.seen(path)) assert.ok(closedAt! < run.timeout_at! + MACHINE_MS);
});

test("a claim whose response is lost is repeated by the same message, and its task runs once", async () => {
  const path = `/ok/${freshId("c")}`;
  const document = oneRequest(peer.url + path, { task: { dispatch: "queue" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, {}, { run_id: freshId("unheard") });
  const run = await curfew.ended(id);
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.equal(peer.seen(path).length, 1);
  assert.deepEqual((await curfew.tokens(id)).map(({ lane, epoch }) => [lane, epoch]), [["queue", 1]]);
});

describe("the direct lane without a timeout", { concurrency: 3 }, () => {
  const endless = { workflow: { timeout: null } };

  test("a frozen executor is detected, and its task is repeated elsewhere", async () => {
    const document = oneTask([request({ url: "http://nobody.example" })], endless);
    await frozen.store(document);
    const run = await frozen.ended(await frozen.start(document.id, { key: freshId("k") }));
    assert.deepEqual([run.status, run.output], ["completed", "attempt 2"], JSON.stringify(run.error));
    const [token] = await frozen.tokens(run.id);
    const after = token!.started_at! - run.started_at;
    assert.ok(after >= SILENCE_MS - 50, `detected after ${after} ms`);
    assert.ok(frozen.logs.some((line) => line.includes("call_silent") && line.includes(run.id)));
  });

  test("an executor with heartbeats is left alone", async () => {
    const document = oneTask([set({ a: 1 })], { task: { dispatch: "direct" }, ...endless });
    const run = await withoutDeadlines.runToEnd(document, { answer_after_ms: 4 * SILENCE_MS });
    assert.deepEqual([run.status, run.output], ["completed", "from the stand-in"]);
    assert.deepEqual((await withoutDeadlines.tokens(run.id)).map(({ epoch }) => epoch), [1]);
  });
});
