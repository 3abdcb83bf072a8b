// Timeout gates: a run past its deadline is paused and waits at a gate. It is extended, aborted or failed there; the gate's own
// deadline guarantees an end.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, freshId, oneRequest, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { GateView, RunView, TimeoutView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const DAY_MS = 24 * 3_600_000;
const LIMIT_MS = 700;

/** first -> second, each a request to a URL of the input, with the default policy. */
const twoRequests = (more: Record<string, unknown> = {}) =>
  workflow({
    timeout: undefined,
    timeout_ms: LIMIT_MS,
    on_timeout: undefined,
    nodes: ["first", "second"].map((id) => ({ id, action_id: "ask", input_mapping: { url: `\${input.${id}}` } })),
    transitions: [{ from_node_id: "first", to_node_id: "second" }],
    actions: [ask],
    output_mapping: "${state.second.status}",
    ...more,
  });

/** One request, with the default policy. */
const oneRequestWithGate = (more: Record<string, unknown> = {}) =>
  oneRequest("${input.url}", { workflow: { timeout: undefined, timeout_ms: LIMIT_MS, on_timeout: undefined, ...more } });

const hangingPath = () => `/hang/${freshId("h")}`;

/** Waits until the run is at its gate with this number. */
const atGate = (runId: string, gateId = "run1", at: Curfew = curfew): Promise<RunView & { gate: GateView }> =>
  until(`${runId} to be at gate ${gateId}`, async () => {
    const run = await at.run(runId);
    return run.gate?.id === gateId && { ...run, gate: run.gate };
  });

/** A run with a hanging request, at its gate. */
async function runAtGate(more: Record<string, unknown> = {}, path = hangingPath()): Promise<RunView & { gate: GateView }> {
  return atGate(await curfew.storeAndStart([oneRequestWithGate(more)], { url: peer.url + path }));
}

const decide = (runId: string, decision: unknown, gateId = "run1") =>
  curfew.api("POST", `/v1/runs/${runId}/gates/${gateId}`, decision);
const control = (runId: string, name: string, body?: unknown) => curfew.api("POST", `/v1/runs/${runId}/${name}`, body);

const listed = async (runId: string): Promise<GateView | undefined> => {
  const { json } = await curfew.api("GET", "/v1/gates?limit=1000");
  return json.items.find((gate: GateView) => gate.run_id === runId);
};

const kinds = async (runId: string) => (await curfew.events(runId)).map(({ kind }) => kind);

describe("timeout gates", { concurrency: 6 }, () => {
  test("a passed deadline pauses the run and opens a gate; work in flight is kept, nothing new starts", async () => {
    const [key, path] = [freshId("k"), `/ok/${freshId("p")}`];
    const document = twoRequests();
    Object.assign(document.nodes[0]!, { timeout: "20s" });
    const id = await curfew.storeAndStart([document], { first: `${peer.url}/held/${key}`, second: peer.url + path });
    const run = await atGate(id);
    assert.equal(run.status, "paused");
    assert.deepEqual(run.paused_by, ["workflow_timeout"]);
    const { opened_at, timeout_at, prompt, input_schema, ...rest } = run.gate;
    assert.deepEqual(rest, {
      id: "run1",
      run_id: id,
      node_id: null,
      token_id: null,
      kind: "workflow_timeout",
      choices: ["extend", "abort", "fail"],
      reminded_at: null,
      status: "open",
      decision: null,
    });
    assert.match(prompt, /700ms/);
    assert.equal(input_schema.properties.by_ms.type, "integer");
    assert.ok(opened_at >= run.started_at + LIMIT_MS && timeout_at === opened_at + 7 * DAY_MS);
    const [ofRun, ofToken, ofGate] = run.deadlines;
    assert.deepEqual(ofRun, { kind: "workflow", remaining_ms: 0 });
    assert.deepEqual([ofToken?.kind, ofToken?.node_id, ofToken?.due_at], ["execution", "first", undefined]);
    assert.deepEqual(ofGate, { kind: "gate", due_at: timeout_at, gate_id: "run1" });
    assert.deepEqual(await until("the gate in the list", () => listed(id)), run.gate);
    await until("the run among the paused", async () => {
      const { json } = await curfew.api("GET", `/v1/runs?status=paused&workflow=${document.id}`);
      return json.items[0]?.id === id;
    });

    // Longer than any grace: the pause does not interrupt work in flight.
    await until("a second to pass", () => Date.now() > opened_at + 1_000);
    peer.release(key);
    await until("the result to be stored", async () => (await curfew.tokens(id))[0]?.status === "completed");
    const [, second] = await curfew.tokens(id);
    assert.deepEqual([second?.node_id, second?.status, second?.epoch], ["second", "pending", 0]);
    assert.equal((await curfew.run(id)).status, "paused");
    assert.equal(peer.seen(path).length, 0, "nothing new begins");

    const extended = await decide(id, { choice: "extend", input: { by: "20s" }, comment: "nearly there", by: "ada" });
    assert.equal(extended.status, 200, extended.text);
    assert.equal(extended.json.timeout_ms, LIMIT_MS + 20_000);
    const ended = await curfew.ended(id);
    assertCompleted(ended);
    assert.equal(ended.output, 200);
    assert.deepEqual([peer.seen(`/held/${key}`).length, peer.seen(path).length], [1, 1], "no work was repeated");
    assert.deepEqual(await kinds(id), [
      "run_started", "token_created", "token_dispatched", "run_paused", "gate_opened", "token_completed", "token_created",
      "gate_decided", "run_extended", "run_resumed", "token_dispatched", "token_completed", "run_completed",
    ]);
    await until("the gate to leave the list", async () => !(await listed(id)));

    const { json } = await curfew.api("GET", `/v1/runs/${id}/timeouts`);
    const [record]: TimeoutView[] = json.items;
    assert.deepEqual(
      [record?.timeout_event.scope, record?.timeout_event.timeout_ms, record?.final_action, json.items.length],
      ["flow", LIMIT_MS, "escalate", 1],
    );
  });

  test("extend continues the run from the gate, by a duration or until a time", async () => {
    const then = () => Date.now() + 20_000;
    const bodies = [
      () => ({ by: "20s" }),
      () => ({ by_ms: 20_000 }),
      () => ({ until: then() }),
      () => ({ until: new Date(then()).toISOString() }),
    ];
    await Promise.all(
      bodies.map(async (body) => {
        const key = freshId("k");
        const id = await curfew.storeAndStart([oneRequestWithGate()], { url: `${peer.url}/held/${key}` });
        await atGate(id);
        const response = await control(id, "extend", body());
        assert.equal(response.status, 200, response.text);
        assert.equal(response.json.status, "running");
        assert.equal(response.json.gate, undefined);
        const left = response.json.timeout_at - Date.now();
        assert.ok(left > 15_000 && left <= 20_000, `${left} ms are left`);
        const again = await decide(id, { choice: "abort" });
        assert.equal(again.status, 409, again.text);
        assert.deepEqual([again.json.error.code, again.json.error.details.decision.choice], ["gate_closed", "extend"]);
        peer.release(key);
        assertCompleted(await curfew.ended(id));
        assert.equal(peer.seen(`/held/${key}`).length, 1, "the work that was in flight is the work that counts");
      }),
    );
  });

  test("abort ends the run as timed out, fail as failed, and hanging work is aborted", async () => {
    const ends = [["abort", "timed_out"], ["fail", "failed"]] as const;
    await Promise.all(
      ends.map(async ([choice, status]) => {
        const path = hangingPath();
        const { id } = await runAtGate({}, path);
        const response = await decide(id, { choice, by: "ada" });
        assert.equal(response.status, 200, response.text);
        const run = await curfew.ended(id);
        assert.equal(run.status, status);
        assert.deepEqual([run.error?.code, run.error?.message], ["workflow_timeout", "Workflow execution timed out after 700ms"]);
        const [token] = await curfew.tokens(id);
        assert.deepEqual([token?.status, token?.reason], ["timed_out", "workflow_timeout"]);
        await until("the connection to close", () => peer.seen(path)[0]?.aborted === true);
        const late = await decide(id, { choice: "extend", input: { by_ms: 1_000 } });
        assert.equal(late.json.error.details.decision.choice, choice, late.text);
        await until("the gate to leave the list", async () => !(await listed(id)));
      }),
    );
  });

  test("the gate's own deadline ends an undecided run", async () => {
    const ends = [[undefined, "timed_out"], ["cancel_all", "timed_out"], ["fail", "failed"]] as const;
    await Promise.all(
      ends.map(async ([on_timeout, status]) => {
        const path = hangingPath();
        const document = oneRequestWithGate({ gate: { timeout_ms: 600, on_timeout } });
        const run = await curfew.runToEnd(document, { url: peer.url + path });
        assert.equal(run.status, status);
        const took = (run.ended_at ?? 0) - run.started_at;
        assert.ok(took >= LIMIT_MS + 600 && took < LIMIT_MS + 600 + 5_000, `it took ${took} ms`);
        await until("the connection to close", () => peer.seen(path)[0]?.aborted === true);
        assert.deepEqual(await kinds(run.id), [
          "run_started", "token_created", "token_dispatched", "run_paused", "gate_opened", "gate_timed_out", "token_timed_out",
          `run_${status}`,
        ]);
        const { json } = await curfew.api("GET", `/v1/runs/${run.id}/timeouts`);
        const scopes = json.items.map((record: TimeoutView) => [record.timeout_event.scope, record.final_action]);
        assert.deepEqual(scopes, [["flow", "escalate"], ["gate", status === "failed" ? "fail" : "cancel"]]);
        const late = await decide(run.id, { choice: "abort" });
        assert.deepEqual([late.status, late.json.error.details.status], [409, "timed_out"], late.text);
      }),
    );
  });

  test("resume does not decide the gate, but names it", async () => {
    const { id } = await runAtGate();
    const response = await control(id, "resume");
    assert.equal(response.status, 409, response.text);
    assert.deepEqual([response.json.error.code, response.json.error.details.gate_id], ["decision_needed", "run1"]);
    const ways = await curfew.api("GET", `/v1/runs/${id}/resume`);
    assert.deepEqual([ways.status, ways.json.resumable], [200, false], ways.text);
    assert.ok(ways.json.reason.includes(`/v1/runs/${id}/gates/run1`), ways.text);
    assert.equal((await curfew.run(id)).status, "paused");
    await control(id, "cancel");
  });

  test("a run that was also paused continues after both the resume and the decision", async () => {
    const key = freshId("k");
    const id = await curfew.storeAndStart([oneRequestWithGate()], { url: `${peer.url}/held/${key}` });
    await atGate(id);
    assert.equal((await control(id, "pause")).status, 200);
    const extended = await control(id, "extend", { by: "20s" });
    assert.deepEqual([extended.json.status, extended.json.paused_by], ["paused", ["person"]], extended.text);
    peer.release(key);
    await until("the result to be stored", async () => (await curfew.tokens(id))[0]?.status === "completed");
    assert.equal((await curfew.run(id)).status, "paused");
    assert.equal((await control(id, "resume")).status, 200);
    assertCompleted(await curfew.ended(id));
  });

  test("an attempt that times out at the gate gets its whole time again", async () => {
    const path = `/hang-first/${freshId("k")}/1`;
    const document = oneRequestWithGate();
    Object.assign(document.nodes[0]!, { timeout: "2s" });
    const id = await curfew.storeAndStart([document], { url: peer.url + path });
    await atGate(id);
    // The executor's own deadline cannot be paused; its timeout report must not end anything.
    await until("the executor to give up", () => peer.seen(path)[0]?.aborted === true);
    await until("the run to receive it", async () => (await curfew.tokens(id))[0]?.status === "pending");
    assert.equal((await curfew.run(id)).status, "paused");
    assert.equal((await control(id, "extend", { by: "20s" })).status, 200);
    assertCompleted(await curfew.ended(id));
    const [token] = await curfew.tokens(id);
    assert.deepEqual([token?.status, token?.epoch, token?.retry_count, token?.timeout_ms], ["completed", 2, 0, 2_000]);
    assert.deepEqual(await curfew.events(id, "token_timed_out"), []);
  });

  test("a second passed deadline opens another gate", async () => {
    const { id } = await runAtGate();
    assert.equal((await decide(id, { choice: "extend", input: { by_ms: 500 } })).status, 200);
    const again = await atGate(id, "run2");
    assert.equal(again.timeout_ms, LIMIT_MS + 500);
    assert.equal((await decide(id, { choice: "abort" }, "run2")).status, 200);
    assert.equal((await curfew.ended(id)).status, "timed_out");
  });

  test("a run at its gate can be cancelled, which closes the gate", async () => {
    const { id } = await runAtGate();
    await until("the gate in the list", () => listed(id));
    assert.equal((await control(id, "cancel")).status, 200);
    assert.equal((await curfew.ended(id)).status, "cancelled");
    await until("the gate to leave the list", async () => !(await listed(id)));
    const late = await decide(id, { choice: "fail" });
    assert.deepEqual([late.status, late.json.error.details.status], [409, "cancelled"], late.text);
  });

  test("of two concurrent decisions the first counts", async () => {
    const { id } = await runAtGate();
    const answers = await Promise.all([
      decide(id, { choice: "abort", by: "ada" }),
      decide(id, { choice: "fail", by: "bob" }),
      control(id, "extend", { by_ms: 20_000 }),
    ]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409], answers.map(({ text }) => text).join());
    await control(id, "cancel");
  });

  test("a running run can be extended before its deadline", async () => {
    const key = freshId("k");
    const id = await curfew.storeAndStart([oneRequestWithGate({ timeout_ms: 3_000 })], { url: `${peer.url}/held/${key}` });
    await until("the request at the peer", () => peer.seen(`/held/${key}`).length === 1);
    const { timeout_at: limitAt } = await curfew.run(id);
    const extended = await control(id, "extend", { by: "20s" });
    assert.equal(extended.json.timeout_at, (limitAt ?? 0) + 20_000, extended.text);
    await until("the old deadline to pass", () => Date.now() > (limitAt ?? 0) + 700);
    assert.equal((await curfew.run(id)).status, "running");
    peer.release(key);
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(`/held/${key}`).length, 1);
  });

  test("with cancel_all, too, the call in flight continues after an extension", async () => {
    const key = freshId("k");
    const id = await curfew.storeAndStart([oneRequestWithGate({ timeout_ms: 2_500, on_timeout: "cancel_all" })], { url: `${peer.url}/held/${key}` });
    await until("the request at the peer", () => peer.seen(`/held/${key}`).length === 1);
    const { timeout_at: limitAt } = await curfew.run(id);
    assert.equal((await control(id, "extend", { by: "20s" })).status, 200);
    await until("the old deadline to pass", () => Date.now() > (limitAt ?? 0) + 1_000);
    peer.release(key);
    assertCompleted(await curfew.ended(id));
    assert.equal(peer.seen(`/held/${key}`).length, 1);
  });

  test("an invalid extension is refused and changes nothing", async () => {
    const { id, timeout_at: timeoutAt } = await runAtGate();
    const cases: [body: unknown, pointer?: string][] = [
      [{}, "/by_ms"],
      [{ by_ms: 0 }, "/by_ms"],
      [{ by_ms: -5 }, "/by_ms"],
      [{ by_ms: "20s" }, "/by_ms"],
      [{ by_ms: null }, "/by_ms"],
      [{ by: "30" }, "/by"],
      [{ by: "20s", by_ms: 20_000 }],
      [{ until: "soon" }, "/until"],
      [{ until: Date.now() + 60_000, by_ms: 5 }, "/until"],
      [{ until: 12 }],
      [{ by_ms: 5_000, reason: "please" }, "/reason"],
      [[], ""],
      ["20s", ""],
    ];
    for (const [body, pointer] of cases) {
      const response = await control(id, "extend", typeof body === "string" ? JSON.stringify(body) : body);
      // An unknown field is a 400.
      assert.equal(response.status, pointer === "/reason" ? 400 : 422, `${JSON.stringify(body)}: ${response.status} ${response.text}`);
      if (pointer !== undefined) assert.equal(response.json.error.pointer ?? "", pointer, `${JSON.stringify(body)}: ${response.text}`);
    }
    const tooMuch = await control(id, "extend", { by: "20000h" });
    assert.equal(tooMuch.status, 422, tooMuch.text);
    const decisions: [decision: unknown, pointer: string][] = [
      [{ choice: "approve" }, "/choice"],
      [{ choice: "extend" }, "/input/by_ms"],
      [{ choice: "extend", input: { by_ms: 0 } }, "/input/by_ms"],
      [{ choice: "extend", input: { by_ms: "1m" } }, "/input/by_ms"],
      [{ choice: "extend", input: { by_ms: 1.5 } }, "/input/by_ms"],
      [{ choice: "extend", input: { by_ms: 10 ** 15 } }, "/input/by_ms"],
    ];
    for (const [decision, pointer] of decisions) {
      const response = await decide(id, decision);
      assert.deepEqual([response.status, response.json.error.pointer], [422, pointer], `${JSON.stringify(decision)}: ${response.text}`);
    }
    const run = await curfew.run(id);
    assert.deepEqual([run.status, run.timeout_at, run.gate?.status], ["paused", timeoutAt, "open"]);
    await control(id, "cancel");
  });

  test("the refusal of an extension says what helps instead", async () => {
    const extend = (runId: string) => control(runId, "extend", { by_ms: 1_000 });
    const ended = await curfew.runToEnd(oneRequestWithGate({ on_timeout: "cancel_all" }), { url: peer.url + hangingPath() });
    const timedOut = await extend(ended.id);
    assert.deepEqual([timedOut.status, timedOut.json.error.code], [409, "run_finished"], timedOut.text);
    assert.match(timedOut.json.error.message, /\/retry.*retry_step.*\/resume/s);
    const completed = await curfew.runToEnd(oneRequestWithGate(), { url: `${peer.url}/ok` });
    const finished = await extend(completed.id);
    assert.deepEqual([finished.status, finished.json.error.code], [409, "run_finished"], finished.text);
    assert.match(finished.json.error.message, /restart/);
    const endless = await curfew.storeAndStart([oneRequestWithGate({ timeout_ms: null })], { url: peer.url + hangingPath() });
    const unlimited = await extend(endless);
    assert.deepEqual([unlimited.status, unlimited.json.error.code], [409, "no_timeout"], unlimited.text);
    await control(endless, "cancel");
    assert.equal((await extend("no-such-run")).status, 404);
  });

  test("a run at its gate survives a restart and continues after an extension", async () => {
    const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
    try {
      const path = `/hang-first/${freshId("k")}/1`;
      let life = await startCurfew({ persistTo: directory });
      const id = await life.storeAndStart([oneRequestWithGate()], { url: peer.url + path });
      const before = await atGate(id, "run1", life);
      await life.dispose();
      life = await startCurfew({ persistTo: directory });
      const run = await life.run(id);
      assert.deepEqual([run.status, run.gate], ["paused", before.gate]);
      assert.equal(peer.seen(path).length, 1, "lost work is not repeated before the decision");
      const response = await life.api("POST", `/v1/runs/${id}/gates/run1`, { choice: "extend", input: { by_ms: 20_000 } });
      assert.equal(response.status, 200, response.text);
      assertCompleted(await life.ended(id));
      assert.equal(peer.seen(path).length, 2);

      const forgotten = await life.storeAndStart([oneRequestWithGate({ gate: { timeout: "3s" } })], { url: peer.url + hangingPath() });
      await atGate(forgotten, "run1", life);
      await life.dispose();
      life = await startCurfew({ persistTo: directory });
      assert.equal((await life.ended(forgotten)).status, "timed_out", "the gate's own deadline survives, too");
      await life.dispose();
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
