// Work past its deadline is stopped: connections close, late results are discarded, and the partial work is kept in the timeout
// record. An executor without deadlines delays nothing.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { fan, freshId, oneRequest, oneTask, request, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

const GRACE_MS = 1_000;
const CLOSED_WITHIN_MS = 100;
/** A busy machine misses a limit of milliseconds from time to time, so the measurement is repeated. */
const TRIES = 10;
/** How late a loaded machine may be in tests that do not measure lateness. */
const MACHINE_MS = 5_000;

let curfew: Curfew;
/** With an executor that knows no deadlines. */
let withoutDeadlines: Curfew;
let peer: Peer;
before(async () => {
  const executor = "tests/workerd/workers/executor-without-deadlines.mjs";
  [curfew, withoutDeadlines, peer] = await Promise.all([startCurfew(), startCurfew({ executor, vars: { CURFEW_GRACE_MS: `${GRACE_MS}` } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), withoutDeadlines.dispose(), peer.close()]));

/** Without a call the task would run inline. */
const direct = { dispatch: "direct" };

const service = (url: string) => ({
  action: { kind: "service_call", implementation: { binding: "ECHO", path: "/relay", method: "POST", body: { url } } },
});

test("connections are closed within 100 ms of the deadline, for every kind of deadline and call", async () => {
  const steps = { http_request: request({ url: "${input.url}" }), service_call: service("${input.url}") };
  const limits = {
    "the run's, cancel_all": { workflow: { timeout: "700ms", on_timeout: "cancel_all" } },
    "the run's, fail": { workflow: { timeout: "700ms", on_timeout: "fail" } },
    "the node's": { node: { timeout: "700ms" } },
  };
  /** How late the connection of one run was closed. */
  const lateness = async (workflowId: string, ofNode: boolean): Promise<number> => {
    const path = `/hang/${freshId("h")}`;
    const run = await curfew.ended(await curfew.start(workflowId, { url: peer.url + path }));
    const seen = await until("the connection to close", () => peer.seen(path).find(({ closedAt }) => closedAt !== undefined));
    assert.equal(seen.aborted, true);
    const [token] = await curfew.tokens(run.id);
    assert.equal(token?.status, "timed_out");
    const dueAt = ofNode ? token.timeout_at : run.timeout_at;
    return (seen.closedAt ?? NaN) - (dueAt ?? NaN);
  };
  // The first run of a process has to load everything.
  const warm = Object.values(steps).map((step) => curfew.runToEnd(oneTask([step]), { url: `${peer.url}/ok` }));
  for (const run of await Promise.all(warm)) assertCompleted(run);

  const kept = async (what: string, document: WorkflowDocument, ofNode: boolean): Promise<void> => {
    await curfew.store(document);
    const late: number[] = [];
    do {
      assert.ok(late.length < TRIES, `${what}: connections were closed ${late} ms late`);
      late.push(await lateness(document.id, ofNode));
      assert.ok(late.at(-1)! >= -50, `${what}: closed before its time, ${late} ms late`);
    } while (late.at(-1)! >= CLOSED_WITHIN_MS);
  };
  for (const [whose, more] of Object.entries(limits)) {
    for (const [kind, step] of Object.entries(steps)) {
      await kept(`${kind}, ${whose} limit`, oneTask([step], more), whose === "the node's");
    }
  }
});

describe("partial work", { concurrency: 8 }, () => {
  test("an executor stops at its deadline and reports finished steps and partial text", async () => {
    const path = "/drip/100/50";
    const steps = [
      request({ url: "${input.url}/ok?n=1" }, { ref: "look", output_mapping: { "state.found": "${result.body.query.n}" } }),
      request({ url: `\${input.url}${path}` }, { ref: "read" }),
      set({ "output.never": true }, { ref: "tell" }),
    ];
    const run = await curfew.runToEnd(oneTask(steps, { node: { timeout: "2s" } }), { url: peer.url });
    assert.equal(run.status, "failed");
    assert.equal(run.error?.step_ref, "read");
    const [token] = await curfew.tokens(run.id);
    assert.deepEqual(token?.steps.map(({ ref, status }) => [ref, status]), [["look", "completed"], ["read", "timed_out"]]);

    const [record, ...others] = await curfew.timeouts(run.id);
    assert.ok(record);
    assert.deepEqual(others, []);
    const { timeout_event: event, last_known_state: state } = record;
    assert.deepEqual([event.scope, event.timeout_ms, record.final_action, record.retry_count], ["step", 2_000, "fail", 0]);
    assert.ok(event.elapsed_ms >= 2_000 && event.lateness_ms === event.elapsed_ms - 2_000, JSON.stringify(event));
    assert.deepEqual(
      [state.node_id, state.token_id, state.step_ref, state.phase, state.progress],
      ["work", "t1", "read", "executing", { steps_completed: 1, steps_total: 3 }],
    );
    const [looked, read] = record.partial_artifacts;
    assert.deepEqual([looked?.name, looked?.complete, record.partial_artifacts.length], ["look", true, 2]);
    assert.equal(JSON.parse(looked?.text ?? "").body.query.n, "1");
    assert.deepEqual([read?.name, read?.complete, read?.bytes], ["read", false, read?.text.length]);
    assert.match(read?.text ?? "", /^1 2 3 4 5 /);
    assert.ok(!read?.text.includes("22 "), "nothing comes after the deadline");
    const seen = await until("the connection to close", () => peer.seen(path).find((one) => one.closedAt !== undefined));
    assert.equal(seen.aborted, true);
  });

  test("each attempt that timed out has its own record", async () => {
    const path = "/drip/50/100";
    const document = oneRequest(`${peer.url}${path}`, { node: { timeout: "800ms", on_timeout: "retry", max_retries: 1 } });
    const run = await curfew.runToEnd(document);
    const records = await curfew.timeouts(run.id);
    assert.deepEqual(
      records.map((record) => [record.final_action, record.retry_count, record.partial_artifacts[0]?.text.slice(0, 4)]),
      [["retry", 0, "1 2 "], ["fail", 1, "1 2 "]],
    );
    const [retried] = await curfew.events(run.id, "token_retried");
    assert.deepEqual([retried?.["token_id"], retried?.["retry_count"], retried?.["delay_ms"]], ["t1", 1, 1_000]);
    const [first, second] = await curfew.events(run.id, "token_timed_out");
    assert.ok((second?.at ?? 0) - (first?.at ?? 0) >= 1_000 + 800, "the next attempt waits a second, then has the whole time");
  });

  test("a branch that is too late for its join runs on, and its result is discarded", async () => {
    const key = freshId("k");
    const document = fan({ join: { strategy: "any" }, workflow: { output_mapping: "${state.results}" } });
    const urls = [`${peer.url}/ok?n=1`, `${peer.url}/held/${key}?n=2`];
    const run = await curfew.runToEnd(document, { urls });
    assertCompleted(run);
    assert.deepEqual(run.output, ["1"]);
    assert.equal(peer.seen(`/held/${key}`)[0]?.closedAt, undefined, "it is not aborted");
    peer.release(key);
    const late = await until("the late result", async () => (await curfew.events(run.id, "late_result_discarded"))[0]);
    assert.deepEqual([late["token_id"], late["epoch"], late["status"]], ["t3", 1, "completed"]);
    assert.deepEqual((await curfew.run(run.id)).output, ["1"]);
  });

  test("an executor that never responds gets its grace and no more", async () => {
    const document = oneTask([set({ a: 1 })], { task: direct, node: { timeout: "400ms" } });
    const run = await withoutDeadlines.runToEnd(document);
    assert.deepEqual([run.status, run.error?.message], ["failed", "step work timed out: context deadline exceeded"]);
    const [record] = await withoutDeadlines.timeouts(run.id);
    const late = record?.timeout_event.lateness_ms ?? NaN;
    assert.ok(late >= GRACE_MS && late < GRACE_MS + MACHINE_MS, `${late} ms after the deadline`);
    assert.deepEqual([record?.partial_artifacts, record?.last_known_state.phase], [[], "executing"]);
  });

  test("the run's own deadline gives an executor no grace", async () => {
    const document = oneTask([set({ a: 1 })], { task: direct, workflow: { timeout: "600ms" } });
    const run = await withoutDeadlines.runToEnd(document);
    assert.equal(run.status, "timed_out");
    const late = (run.ended_at ?? NaN) - (run.timeout_at ?? NaN);
    assert.ok(late >= 0 && late < MACHINE_MS, `${late} ms after the deadline`);
  });

  test("a report within the grace counts, a later one is discarded and logged as an event", async () => {
    const inTime = oneTask([set({ a: 1 })], { task: direct, node: { timeout: "400ms" } });
    const counted = await withoutDeadlines.runToEnd(inTime, { answer_after_ms: 500 });
    assertCompleted(counted);
    assert.equal(counted.output, "from the stand-in");

    // Both orders share a call to the executor, which stays open for the second after the first has timed out.
    const node = (id: string, more: object) => ({
      id,
      action_id: "pure",
      ...direct,
      input_mapping: { answer_after_ms: `\${input.${id}}` },
      output_mapping: { [`state.${id}`]: "${result}" },
      ...more,
    });
    const document = workflow({
      nodes: [{ id: "start" }, node("slow", { timeout: "300ms" }), node("slower", {}), { id: "late" }],
      transitions: [
        { from_node_id: "start", to_node_id: "slow" },
        { from_node_id: "start", to_node_id: "slower" },
        { from_node_id: "slow", to_node_id: "late", on: "timeout" },
      ],
      actions: [{ id: "pure", kind: "update_context", implementation: { set: { a: 1 } } }],
      output_mapping: "${state}",
    });
    const run = await withoutDeadlines.runToEnd(document, { slow: 2_000, slower: 2_600 });
    assertCompleted(run);
    assert.deepEqual(run.output, { slower: "from the stand-in" });
    const [late, ...others] = await withoutDeadlines.events(run.id, "late_result_discarded");
    assert.deepEqual([late?.["token_id"], late?.["epoch"], late?.["status"], others.length], ["t2", 1, "completed", 0]);
  });
});
