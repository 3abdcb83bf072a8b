// Resuming runs that failed or timed out: timeout records, resume options, and finished work that is not repeated. The peer
// counts requests.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { checkShape } from "./contract.ts";
import { assertCompleted } from "./assertions.ts";
import { ask, freshId, markAction, markNode, oneRequest, oneTask, request, set, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { RunView, TimeoutView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const read = (runId: string, what: string) => curfew.api("GET", `/v1/runs/${runId}/${what}`);
const post = (runId: string, what: string, body?: unknown) => curfew.api("POST", `/v1/runs/${runId}/${what}`, body);

async function retry(runId: string, mode: string, more: object = {}): Promise<RunView> {
  const response = await post(runId, "retry", { mode, ...more });
  assert.equal(response.status, 200, response.text);
  return response.json;
}

function assertError(response: ApiResponse, status: number, code: string): void {
  assert.deepEqual([response.status, response.json?.error?.code], [status, code], response.text);
}

const requestCount = (path: string) => peer.seen(path).length;
const keys = (path: string) => peer.seen(path).map(({ headers }) => headers["idempotency-key"]);

/** prepare -> work, whose task has the steps `one` and `two`; the input has the URL of `two`. */
const twoSteps = (paths: { prepare: string; one: string }, more: { node?: object; workflow?: object } = {}): WorkflowDocument =>
  workflow({
    nodes: [
      { id: "prepare", action_id: "ask", input_mapping: { url: peer.url + paths.prepare } },
      { id: "work", task_id: "work", ...more.node },
    ],
    transitions: [{ from_node_id: "prepare", to_node_id: "work" }],
    actions: [ask],
    tasks: [
      {
        id: "work",
        steps: [
          request({ url: peer.url + paths.one }, { ref: "one", output_mapping: { "state.one": "${result.body.count}" } }),
          request({ url: "${input.url}" }, { ref: "two", output_mapping: { "output.two": "${result.body.count}" } }),
          set({ "output.one": "${state.one}" }, { ref: "three" }),
        ],
      },
    ],
    output_mapping: "${state.work}",
    ...more.workflow,
  });

const freshPaths = () => ({ prepare: `/count/${freshId("prepare")}`, one: `/count/${freshId("one")}` });

/** A run of `twoSteps` whose second step failed once and would succeed now. */
async function failedOnce(): Promise<{ run: RunView; prepare: string; one: string; two: string }> {
  const [paths, two] = [freshPaths(), `/flaky/${freshId("two")}/1/500`];
  const run = await curfew.runToEnd(twoSteps(paths), { url: peer.url + two });
  assert.deepEqual([run.status, run.error?.step_ref], ["failed", "two"], JSON.stringify(run.error));
  return { run, ...paths, two };
}

describe("recovery", { concurrency: 6 }, () => {
  test("retry_step continues after the finished steps", async () => {
    const { run, prepare, one, two } = await failedOnce();
    const ways = await read(run.id, "resume");
    assert.deepEqual(
      [ways.status, ways.json.resumable, ways.json.recommended, ways.json.reason, ways.json.why],
      [200, true, "retry_step", null, "steps were finished that need not be done again"],
      ways.text,
    );
    assert.deepEqual(
      ways.json.options.map(({ mode, open }: { mode: string; open: boolean }) => [mode, open]),
      [["retry_step", true], ["discard_and_retry", true], ["escalate", true]],
    );
    const [failed] = ways.json.failed_tokens;
    assert.deepEqual([failed.token_id, failed.node_id, failed.has_partial_work, failed.error.code], ["t2", "work", true, "http_500"]);
    assert.equal(ways.json.last_successful_checkpoint.node_id, "prepare");

    const going = await retry(run.id, "retry_step");
    assert.deepEqual([going.status, going.error, going.ended_at], ["running", null, null]);
    const ended = await curfew.ended(run.id);
    assertCompleted(ended);
    assert.deepEqual(ended.output, { one: 1, two: 2 });
    assert.deepEqual([requestCount(prepare), requestCount(one), requestCount(two)], [1, 1, 2]);
    assert.equal(new Set(keys(two)).size, 1, "the peer can tell that it is the same work");
    const tokens = await curfew.tokens(run.id);
    assert.deepEqual(
      tokens.map(({ node_id, status, parent_token_id }) => [node_id, status, parent_token_id]),
      [["prepare", "completed", null], ["work", "failed", "t1"], ["work", "completed", "t2"]],
    );
    assert.deepEqual(tokens[2]?.steps.map(({ ref, status }) => [ref, status]), ["one", "two", "three"].map((ref) => [ref, "completed"]));
    const events = await curfew.events(run.id);
    const ofTokens = ["token_created", "token_dispatched"];
    assert.deepEqual(events.map(({ kind }) => kind), [
      "run_started", ...ofTokens, "token_completed", ...ofTokens, "token_failed", "run_failed",
      "run_retried", ...ofTokens, "token_completed", "run_completed",
    ]);
    const retried = events.find(({ kind }) => kind === "run_retried");
    assert.deepEqual([retried?.["mode"], retried?.["token_ids"]], ["retry_step", ["t2"]]);
  });

  test("discard_and_retry repeats the step from its beginning, with a new idempotency key", async () => {
    const { run, prepare, one, two } = await failedOnce();
    await retry(run.id, "discard_and_retry");
    const ended = await curfew.ended(run.id);
    assertCompleted(ended);
    assert.deepEqual(ended.output, { one: 2, two: 2 });
    assert.deepEqual([requestCount(prepare), requestCount(one), requestCount(two)], [1, 2, 2]);
    assert.equal(new Set(keys(two)).size, 2, "a new key, so that a peer that honours keys repeats the work");
  });

  test("escalate opens a gate, and its decision continues the run", async () => {
    const { run, one, two } = await failedOnce();
    const going = await retry(run.id, "escalate");
    assert.deepEqual([going.status, going.gate?.id, going.gate?.kind, going.gate?.choices], ["paused", "run1", "escalation", ["retry", "fail"]]);
    assert.match(going.gate?.prompt, /status 500/);
    await until("the gate in the list", async () => {
      const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
      return json.items.some(({ run_id }: { run_id: string }) => run_id === run.id);
    });
    assertError(await post(run.id, "resume"), 409, "decision_needed");
    assertError(await post(run.id, "retry", { mode: "retry_step" }), 409, "run_not_ended");
    assert.equal(requestCount(two), 1, "nothing begins before the decision");
    const decided = await post(run.id, "gates/run1", { choice: "retry", by: "ada" });
    assert.equal(decided.status, 200, decided.text);
    const ended = await curfew.ended(run.id);
    assertCompleted(ended);
    assert.deepEqual([requestCount(one), requestCount(two)], [1, 2]);
  });

  test("the decision fail ends the run again, and it can still be resumed", async () => {
    const { run, one, two } = await failedOnce();
    await retry(run.id, "escalate");
    assert.equal((await post(run.id, "gates/run1", { choice: "fail" })).status, 200);
    const refused = await curfew.ended(run.id);
    assert.deepEqual([refused.status, refused.error?.code], ["failed", "escalation_refused"]);
    await retry(run.id, "retry_step");
    assertCompleted(await curfew.ended(run.id));
    assert.deepEqual([requestCount(one), requestCount(two)], [1, 2]);
  });

  test("a timeout in a step: the record, the log line, and the resume", async () => {
    const [paths, two] = [freshPaths(), `/hang-first/${freshId("two")}/1`];
    const run = await curfew.runToEnd(twoSteps(paths, { node: { timeout: "1.5s" } }), { url: peer.url + two });
    assert.equal(run.status, "failed");
    const { json, status } = await read(run.id, "timeouts");
    assert.deepEqual([status, json.items.length, json.next_cursor], [200, 1, null]);
    const [listed]: TimeoutView[] = json.items;
    const full = await curfew.api("GET", listed?.recovery_path ?? "");
    assert.equal(full.status, 200, full.text);
    const record: TimeoutView = full.json;
    assert.deepEqual(record.context_for_resume.state, run.context.state);
    assert.equal(record.context_for_resume.last_successful_checkpoint?.node_id, "prepare");
    assert.equal(record.last_known_state.step_ref, "two");
    assert.deepEqual(record.partial_artifacts.map(({ name, complete }) => [name, complete]), [["one", true]], "nothing had come of two");

    const lines = await fetch(`${curfew.url}/v1/runs/${run.id}/timeouts`, { headers: { accept: "application/x-ndjson" } });
    assert.equal(lines.headers.get("content-type"), "application/x-ndjson");
    const text = await lines.text();
    assert.ok(text.endsWith("}\n"), text);
    const [line, ...others] = text.trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(others, []);
    checkShape("TimeoutLine", line);
    const { timestamp, elapsed_ms, ...rest } = line;
    assert.deepEqual(rest, {
      run_id: run.id,
      flow_key: run.workflow_id,
      step_id: "work",
      scope: "step",
      timeout_ms: 1_500,
      retry_count: 0,
      final_action: "fail",
      recovery_path: record.recovery_path,
    });
    assert.equal(new Date(timestamp).toISOString(), timestamp);
    assert.deepEqual([timestamp, elapsed_ms], [record.timeout_event.timestamp, record.timeout_event.elapsed_ms]);

    assert.equal((await read(run.id, "resume")).json.recommended, "retry_step");
    await retry(run.id, "retry_step");
    const ended = await curfew.ended(run.id);
    assertCompleted(ended);
    assert.deepEqual([requestCount(paths.prepare), requestCount(paths.one), requestCount(two)], [1, 1, 2]);
    assert.equal(new Set(keys(two)).size, 1);
  });

  test("a run that timed out resumes with its whole timeout", async () => {
    const path = `/hang-first/${freshId("k")}/1`;
    const document = workflow({
      timeout: undefined,
      timeout_ms: 2_000,
      nodes: [markNode("first"), { id: "second", action_id: "ask" }],
      transitions: [{ from_node_id: "first", to_node_id: "second" }],
      actions: [markAction("first"), ask],
      output_mapping: "${state.second.body.count}",
    });
    const run = await curfew.runToEnd(document, { url: peer.url + path });
    assert.equal(run.status, "timed_out");
    const [record]: TimeoutView[] = (await read(run.id, "timeouts")).json.items;
    assert.deepEqual(
      [record?.timeout_event.scope, record?.final_action, record?.last_known_state.phase, record?.last_known_state.progress.live],
      ["flow", "cancel", "running", ["t2"]],
    );
    assert.equal(record?.context_for_resume.last_successful_checkpoint?.node_id, "first");
    const ways = await read(run.id, "resume");
    assert.deepEqual([ways.json.recommended, ways.json.why], ["retry_step", "time ran out; the next attempt has all of it again"]);
    const before = Date.now();
    const going = await retry(run.id, "retry_step");
    assert.equal(going.timeout_ms, 2_000);
    assert.ok((going.timeout_at ?? 0) >= before + 2_000, "the timeout starts here");
    const ended = await curfew.ended(run.id);
    assertCompleted(ended);
    assert.equal(ended.output, 2);
    const tokens = await curfew.tokens(run.id);
    assert.deepEqual(tokens.map(({ node_id, status }) => [node_id, status]), [["first", "completed"], ["second", "timed_out"], ["second", "completed"]]);
  });

  test("permanent failures recommend escalate, validation failures discard_and_retry", async () => {
    const cases = [["404", "escalate"], ["401", "escalate"], ["422", "discard_and_retry"], ["503", "retry_step"]] as const;
    await Promise.all(
      cases.map(async ([status, mode]) => {
        const run = await curfew.runToEnd(oneRequest(`${peer.url}/status/${status}`));
        const { json } = await read(run.id, "resume");
        assert.equal(json.recommended, mode, status);
        assert.ok(json.why.length > 0);
      }),
    );
  });

  test("every ended run has a deliverable, a live run has none", async () => {
    const [path, hanging] = [`/flaky/${freshId("k")}/1/500`, `/hang/${freshId("h")}`];
    const chain = (more: object = {}) =>
      workflow({
        nodes: [markNode("first"), { id: "second", action_id: "ask" }],
        transitions: [{ from_node_id: "first", to_node_id: "second" }],
        actions: [markAction("first"), ask],
        output_mapping: "${state.second.status}",
        ...more,
      });
    const deliverable = async (runId: string) => {
      const response = await read(runId, "deliverable");
      assert.equal(response.status, 200, response.text);
      return response.json;
    };
    const failed = await curfew.runToEnd(chain(), { url: peer.url + path });
    const partial = await deliverable(failed.id);
    assert.deepEqual(
      [partial.kind, partial.status, partial.reason, partial.completed_nodes, partial.state],
      ["fallback", "partial", "http_500", ["first"], { first: { visited: "first" } }],
    );
    assert.match(partial.message, /status 500/);
    assert.equal(partial.diagnostics.errors[0].node_id, "second");
    assert.equal((await curfew.api("GET", partial.diagnostics.resume)).status, 200);

    await retry(failed.id, "retry_step");
    assertCompleted(await curfew.ended(failed.id));
    assert.deepEqual(await deliverable(failed.id), { kind: "output", status: "complete", run_id: failed.id, output: 200 });

    const timedOut = await curfew.runToEnd(chain({ timeout: "1.5s" }), { url: peer.url + hanging });
    const late = await deliverable(timedOut.id);
    assert.deepEqual([late.kind, late.reason, late.completed_nodes, late.diagnostics.timeouts], ["fallback", "workflow_timeout", ["first"], 1]);

    const document = chain();
    await curfew.store(document);
    const live = await curfew.start(document.id, { url: peer.url + hanging });
    assertError(await read(live, "deliverable"), 409, "run_not_ended");
    await until("the first node to be done", async () => (await curfew.tokens(live)).length === 2);
    await post(live, "cancel", { reason: "not needed" });
    const cancelled = await deliverable(live);
    assert.deepEqual([cancelled.kind, cancelled.reason, cancelled.completed_nodes, cancelled.message], ["fallback", "cancelled", ["first"], "not needed"]);
  });

  test("only a run that failed or timed out can be retried", async () => {
    const document = oneRequest("${input.url}");
    await curfew.store(document);
    const live = await curfew.start(document.id, { url: `${peer.url}/hang` });
    assertError(await post(live, "retry", { mode: "retry_step" }), 409, "run_not_ended");
    const waysOfLive = await read(live, "resume");
    assert.deepEqual([waysOfLive.json.resumable, waysOfLive.json.recommended], [false, null], waysOfLive.text);
    await post(live, "cancel");
    assertError(await post(live, "retry", { mode: "retry_step" }), 409, "not_resumable");
    const completed = await curfew.runToEnd(document, { url: `${peer.url}/ok` });
    const refused = await post(completed.id, "retry", { mode: "discard_and_retry" });
    assertError(refused, 409, "not_resumable");
    assert.match(refused.json.error.message, /restart/);
    assertError(await post("no-such-run", "retry", { mode: "retry_step" }), 404, "not_found");
  });

  test("an invalid retry is refused and changes nothing", async () => {
    const run = await curfew.runToEnd(oneRequest(`${peer.url}/status/500`));
    const cases: [body: unknown, pointer: string][] = [
      [{}, "/mode"],
      [{ mode: "again" }, "/mode"],
      [{ mode: 3 }, "/mode"],
      [{ mode: "retry_step", token_id: 7 }, "/token_id"],
      [{ mode: "retry_step", token_id: "seven" }, "/token_id"],
      [{ mode: "retry_step", tokenid: "t1" }, "/tokenid"],
      [[], ""],
    ];
    for (const [body, pointer] of cases) {
      const response = await post(run.id, "retry", body);
      assert.deepEqual([response.status, response.json.error.pointer ?? ""], [pointer === "/tokenid" ? 400 : 422, pointer], `${JSON.stringify(body)}: ${response.text}`);
    }
    assertError(await post(run.id, "retry", { mode: "retry_step", token_id: "t99" }), 409, "not_resumable");
    assert.equal((await curfew.run(run.id)).status, "failed");
    for (const unknown of ["timeouts/99", "timeouts/0", "timeouts/first"]) assertError(await read(run.id, unknown), 404, "not_found");
    for (const what of ["timeouts", "timeouts/1", "events", "resume", "deliverable"]) {
      assertError(await read("no-such-run", what), 404, "not_found");
    }
    for (const list of ["events", "timeouts"]) assertError(await read(run.id, `${list}?after=soon`), 400, "invalid_request");
    for (const control of ["retry", "extend"]) assert.equal((await post(run.id, control, "{")).status, 400, "not JSON");
    assertError(await read(run.id, "events?limit=0"), 400, "invalid_request");
  });

  test("events are numbered and read from a cursor on", async () => {
    const { run } = await failedOnce();
    await retry(run.id, "escalate");
    await post(run.id, "gates/run1", { choice: "retry" });
    await curfew.ended(run.id);
    const all = await curfew.events(run.id);
    assert.ok(all.length >= 3, JSON.stringify(all));
    assert.deepEqual(all.map(({ seq }) => seq), all.map((_, index) => index + 1));
    for (let after = "0"; after !== String(all.length); ) {
      const { json } = await read(run.id, `events?after=${after}&limit=1`);
      assert.deepEqual(json.items, [all[Number(after)]]);
      const next = String(Number(after) + 1);
      assert.equal(json.next_cursor, next === String(all.length) ? null : next);
      after = next;
    }
    assert.deepEqual((await read(run.id, `events?after=${all.length}`)).json.items, []);
  });

  test("a failure in a task's output leaves no checkpoint, and the whole task runs again", async () => {
    const [counted, key] = [`/count/${freshId("one")}`, freshId("k")];
    const steps = [request({ url: `${peer.url}${counted}?ready_at=2` }, { ref: "only" })];
    const schema = { type: "object", properties: { body: { type: "object", properties: { ready: { const: true } } } } };
    const run = await curfew.runToEnd(oneTask(steps, { task: { output_schema: schema } }), { key });
    assert.deepEqual([run.status, run.error?.code], ["failed", "schema_mismatch"]);
    await retry(run.id, "retry_step");
    assertCompleted(await curfew.ended(run.id));
    assert.equal(requestCount(counted), 2);
  });
});

test("a run that was failed after panics keeps its work and can be resumed", async () => {
  const [done, held] = [`/ok/${freshId("k")}`, `/held/${freshId("k")}`];
  const document = workflow({
    nodes: [
      { id: "prepare", action_id: "ask", input_mapping: { url: peer.url + done } },
      { id: "work", action_id: "ask", input_mapping: { url: peer.url + held } },
    ],
    transitions: [{ from_node_id: "prepare", to_node_id: "work" }],
    actions: [ask],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await until("the request at the peer", () => requestCount(held) > 0);
  // What entry.mjs does after the fifth panic of the alarm; the API has no such request.
  const response = await curfew.sendToRun(id, "abandon");
  assert.deepEqual([response.status, response.json], [200, { abandoned: true }]);
  const run = await curfew.ended(id);
  assert.deepEqual([run.status, run.error?.code], ["failed", "internal_error"]);
  assert.equal((await read(id, "deliverable")).json.completed_nodes.length, 1);
  await retry(id, "retry_step");
  await until("the second attempt", () => requestCount(held) > 1);
  peer.release(held.slice(6));
  assertCompleted(await curfew.ended(id));
  assert.equal(requestCount(done), 1);
});
