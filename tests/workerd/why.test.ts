// Why it timed out: the field `why` of a single record, from real runs with peers that hang or answer late. The smallest limit is set
// as the record says, and the same calls then end in time.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Timeout } from "../../client/types.ts";
import { assertCompleted } from "./assertions.ts";
import { ask, fan, freshId, oneRequest, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([
    startCurfew({ vars: { CURFEW_RETRY_DELAY_MS: "50" }, entry: "tests/workerd/workers/counting-coordinator.mjs" }),
    startPeer(),
  ]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** Long enough for quick calls on a busy machine. */
const LIMIT_MS = 2_000;
/** Calls that are made again take a little longer or shorter each time. */
const SLACK_MS = 10_000;

type Why = NonNullable<Timeout["why"]>;

/** The record of the run's timeout number `number`, as its own route shows it. */
async function whyOf(runId: string, number = 0): Promise<Why> {
  const record = (await curfew.api("GET", `/v1/runs/${runId}/timeouts`)).json.items[number];
  assert.ok(record, `${runId} has a timeout`);
  assert.ok(!("why" in record), "only the route of a single record says why");
  const response = await curfew.api("GET", record.recovery_path);
  assert.equal(response.status, 200, response.text);
  return response.json.why;
}

/** The document under the limit that the record proposes, and the slack. */
function underSmallest(document: WorkflowDocument, { change, smallest_limit_ms }: Why): WorkflowDocument {
  assert.ok(change && smallest_limit_ms !== null);
  const copy = structuredClone({ ...document, id: freshId("held") }) as any;
  for (const { op, path, value } of change) {
    const names = path.split("/").slice(1);
    const last = names.pop()!;
    const parent = names.reduce((value, name) => value[name], copy);
    assert.equal(last in parent, op === "replace", path);
    parent[last] = typeof value === "string" ? `${smallest_limit_ms + SLACK_MS}ms` : smallest_limit_ms + SLACK_MS;
  }
  return copy;
}

const hangingUrl = () => `${peer.url}/hang/${freshId("h")}`;

describe("why it timed out", () => {
  test("a call that hangs: its limit, its attempts, and what the node usually takes by the metrics", async () => {
    const document = oneRequest("${input.url}", { node: { timeout_ms: LIMIT_MS, on_timeout: "retry", max_retries: 1 } });
    await curfew.store(document);
    const quick = await Promise.all(Array.from({ length: 8 }, () => curfew.start(document.id, { url: `${peer.url}/slow/30` })));
    for (const id of quick) assertCompleted(await curfew.ended(id));
    const runId = await curfew.start(document.id, { url: hangingUrl() });
    await curfew.ended(runId);
    const why = await until("the metrics of the runs", async () => {
      const why = await whyOf(runId, 1);
      return why.usual.samples >= 8 && why;
    });
    assert.deepEqual(why.limit, {
      layer: "execution", source: "node", timeout_ms: LIMIT_MS, pointer: "/nodes/0/timeout_ms", document: null, preset: null, reason: null,
    });
    assert.deepEqual(why.used.attempts?.map(({ epoch, ended }) => [epoch, ended]), [[1, "timed_out"], [2, "timed_out"]]);
    assert.ok(why.used.attempts?.every(({ duration_ms }) => duration_ms! >= LIMIT_MS));
    assert.deepEqual(why.used.waits?.map(({ why }) => why), ["retry_delay"]);
    assert.ok(why.used.waited_ms! >= 50);
    assert.deepEqual([why.smallest_limit_ms, why.change, why.more_than_ms], [null, null, LIMIT_MS]);
    assert.match(why.smallest_limit_reason, /^more than 2s: the call had not answered when it was cut; 99 of 100 /);
    const { usual } = why;
    assert.deepEqual([usual.workflow_id, usual.node_id, usual.source], [document.id, "work", "metrics"]);
    assert.ok(usual.p50_ms! >= 30 && usual.p50_ms! <= usual.p99_ms!, JSON.stringify(usual));
    assert.ok(usual.p50_ms! < 10_000);
  });

  test("a node with an adaptive limit has exact durations", async () => {
    const document = oneRequest("${input.url}", { node: { timeout: "adaptive" }, workflow: { timeout: "1m" } });
    await curfew.store(document);
    const slow = { url: `${peer.url}/slow/60` };
    const quick = await Promise.all(Array.from({ length: 20 }, () => curfew.start(document.id, slow)));
    for (const id of quick) assertCompleted(await curfew.ended(id));
    const rows = await until("twenty samples", async () => {
      const rows = await curfew.sql("SELECT ms FROM latencies WHERE workflow_id = ?1", [document.id]);
      return rows.length === 20 && rows.map(({ ms }) => ms).sort((a, b) => a - b);
    });
    const runId = await curfew.start(document.id, { url: hangingUrl() });
    await curfew.ended(runId, 30_000);
    const why = await whyOf(runId);
    assert.equal(why.limit.source, "adaptive");
    assert.match(why.limit.reason ?? "", /^adaptive: 3 x p99 /);
    assert.deepEqual(why.usual, {
      workflow_id: document.id, node_id: "work", samples: 20, p50_ms: rows[9], p99_ms: rows[19], source: "latencies", reason: null,
    });
  });

  test("a join whose branch answered late: the smallest limit, which holds", async () => {
    const key = freshId("late");
    const document = fan({ join: { timeout_ms: 300, on_timeout: "proceed_with_available" } });
    const urls = [`${peer.url}/ok?n=1`, `${peer.url}/held/${key}?n=2`];
    const runId = await curfew.storeAndStart([document], { urls });
    assertCompleted(await curfew.ended(runId));
    const before = await whyOf(runId);
    assert.deepEqual([before.smallest_limit_ms, before.change], [null, null]);
    assert.deepEqual(before.used.missing?.map(({ index, node_id, came_at }) => [index, node_id, came_at]), [[1, "work", null]]);
    peer.release(key);
    const late = await until("the late result", async () => (await curfew.events(runId, "late_result_discarded"))[0]);
    const why = await whyOf(runId);
    assert.equal(why.used.missing?.[0]?.came_at, late.at);
    assert.equal(why.smallest_limit_ms, late.at - why.used.first_arrival_at! + 1);
    assert.equal(why.limit.pointer, "/transitions/1/synchronization/timeout_ms");
    const held = underSmallest(document, why);
    const again = await curfew.runToEnd(held, { urls: [`${peer.url}/ok?n=1`, `${peer.url}/slow/${why.smallest_limit_ms}?n=2`] });
    assertCompleted(again);
    assert.deepEqual(await curfew.timeouts(again.id), []);
  });

  test("a run whose work was accepted at the gate of its limit", async () => {
    const key = freshId("gate");
    const document = workflow({
      timeout: "2s",
      on_timeout: "human_gate",
      nodes: ["first", "second"].map((id) => ({ id, action_id: "ask", input_mapping: { url: `\${input.${id}}` } })),
      transitions: [{ from_node_id: "first", to_node_id: "second" }],
      actions: [ask],
    });
    const runId = await curfew.storeAndStart([document], { first: `${peer.url}/slow/200`, second: `${peer.url}/held/${key}` });
    await until("the gate", async () => (await curfew.run(runId)).status === "paused");
    assert.match((await whyOf(runId)).smallest_limit_reason, /^the run has not completed/);
    peer.release(key);
    await until("the result that was kept", async () => (await curfew.tokens(runId))[1]?.status === "completed");
    assert.equal((await curfew.api("POST", `/v1/runs/${runId}/extend`, { by_ms: 60_000 })).status, 200);
    const ended = await curfew.ended(runId);
    assertCompleted(ended);
    const why = await whyOf(runId);
    assert.deepEqual(why.used.critical_way?.map(({ node_id }) => node_id), ["first", "second"]);
    const total = why.used.critical_way?.reduce((sum, { duration_ms }) => sum + duration_ms, 0);
    assert.equal(total, LIMIT_MS, "the way up to the limit");
    // The way is the two calls, one after the other; the time at the gate after the second one does not count.
    const tokens = await curfew.tokens(runId);
    const calls = tokens.map((token) => token.ended_at! - token.started_at!);
    const needed = calls[0]! + calls[1]!;
    assert.ok(Math.abs(why.smallest_limit_ms! - needed) <= 20, `${why.smallest_limit_ms} for ${calls}`);
    assert.ok(why.smallest_limit_ms! > LIMIT_MS);
    // The recorded run once more, in virtual time: under the change it holds, a millisecond less is too short.
    const whatIf = async (millis: number) => {
      assert.equal(why.change?.[0]?.path, "/timeout");
      const changes = why.change.map((operation) => ({ ...operation, value: `${millis}ms` }));
      const response = await curfew.api("POST", `/v1/runs/${runId}/what-if`, { changes });
      assert.equal(response.status, 200, response.text);
      const { replayed, unknown } = response.json;
      assert.deepEqual(unknown, []);
      return [replayed.status, replayed.timeouts.length];
    };
    assert.equal(why.change?.[0]?.value, `${why.smallest_limit_ms}ms`);
    assert.deepEqual(await whatIf(why.smallest_limit_ms!), ["completed", 0]);
    assert.deepEqual(await whatIf(why.smallest_limit_ms! - 1), ["completed", 1], "the recorded extension follows");
    const again = await curfew.runToEnd(underSmallest(document, why), { first: `${peer.url}/slow/200`, second: `${peer.url}/slow/${LIMIT_MS}` });
    assertCompleted(again);
    assert.deepEqual(await curfew.timeouts(again.id), []);
  });

  test("an index that does not answer is said, and the rest is there", async () => {
    const run = await curfew.runToEnd(oneRequest("${input.url}", { node: { timeout_ms: 300 } }), { url: hangingUrl() });
    const whole = await whyOf(run.id);
    await curfew.api("POST", "/database/off");
    try {
      const why = await whyOf(run.id);
      assert.deepEqual(why.usual.reason, "the index did not answer; ask again");
      assert.deepEqual({ ...why, usual: null, smallest_limit_reason: null }, { ...whole, usual: null, smallest_limit_reason: null });
    } finally {
      await curfew.api("POST", "/database/on");
    }
    assert.ok(curfew.logLines("index_failed").length > 0);
  });

  test("a timeout that is not there", async () => {
    const run = await curfew.runToEnd(oneRequest("${input.url}"), { url: `${peer.url}/ok` });
    assert.equal((await curfew.api("GET", `/v1/runs/${run.id}/timeouts/1`)).status, 404);
  });
});
