// A deadline of ten seconds or more has one warning before it passes; and the lateness of deadlines is reported per layer.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { fan, freshId, oneRequest, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { EventView, RunView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew({ vars: { CURFEW_RETRY_DELAY_MS: "20" } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** Warns after half a second of ten. */
const early = { timeouts: { warn_at: 0.05 } };
const EARLY_MS = 500;

const warnings = (runId: string) => curfew.events(runId, "deadline_warning");
const warningOf = (runId: string, deadline: string, deadlineMs?: number): Promise<EventView> =>
  until(
    `a warning of ${deadline}`,
    async () => (await warnings(runId)).find((event) => event["deadline"] === deadline),
    deadlineMs,
  );
const cancel = (runId: string) => curfew.api("POST", `/v1/runs/${runId}/cancel`);
const passed = (moment: number) => until("that time to pass", () => Date.now() > moment);

describe("warnings", { concurrency: 10 }, () => {
  test("at 80 % of ten seconds the run and its node have a warning, each once", async () => {
    const key = freshId("k");
    const document = oneRequest("${input.url}", { workflow: { timeout: "10s" }, node: { timeout: "10s" } });
    const id = await curfew.storeAndStart([document], { url: `${peer.url}/held/${key}` });
    const { started_at: startedAt, timeout_at: timeoutAt } = await curfew.run(id);
    const [ofRun, ofNode] = await Promise.all([warningOf(id, "workflow", 12_000), warningOf(id, "execution", 12_000)]);
    for (const event of [ofRun, ofNode]) {
      const after = event.at - startedAt;
      assert.ok(after >= 8_000 && after < 10_000, `warned after ${after} ms`);
      assert.equal(event["timeout_ms"], 10_000);
      assert.equal(event["remaining_ms"], event["due_at"] - event.at);
    }
    assert.equal(ofRun["due_at"], timeoutAt);
    assert.deepEqual([ofNode["node_id"], ofNode["token_id"]], ["work", "t1"]);
    peer.release(key);
    assertCompleted(await curfew.ended(id));
    assert.equal((await warnings(id)).length, 2);
  });

  test("gates, signals, joins and the gate of the run have warnings, too", async () => {
    const urls = [`${peer.url}/ok?n=1`, `${peer.url}/hang/${freshId("h")}`];
    const cases: [kind: string, document: WorkflowDocument, input?: unknown][] = [
      ["gate", workflow({ ...early, nodes: [{ id: "review", gate: { timeout: "10s" } }] })],
      ["wait", workflow({ ...early, nodes: [{ id: "listen", wait: { signal: "news", timeout: "10s" } }] })],
      ["synchronization", fan({ join: { timeout: "10s" }, workflow: early }), { urls }],
      ["gate", oneRequest(`${peer.url}/hang`, { workflow: { ...early, timeout: "300ms", on_timeout: "human_gate", gate: { timeout: "10s" } } })],
    ];
    await Promise.all(
      cases.map(async ([kind, document, input]) => {
        const id = await curfew.storeAndStart([document], input);
        const event = await warningOf(id, kind);
        assert.equal(event["timeout_ms"], 10_000);
        const remaining = event["remaining_ms"];
        assert.ok(remaining <= 10_000 - EARLY_MS && remaining > 5_000, `${kind}: ${remaining} ms remain`);
        await cancel(id);
        assert.equal((await warnings(id)).filter((event) => event["deadline"] === kind).length, 1);
      }),
    );
  });

  test("a shorter deadline has no warning", async () => {
    const document = oneRequest(`${peer.url}/hang`, { workflow: { ...early, timeout: "9.999s" }, node: { timeout: "9.998s" } });
    const id = await curfew.storeAndStart([document]);
    await passed(Date.now() + 3 * EARLY_MS);
    assert.equal((await curfew.run(id)).status, "running");
    await cancel(id);
    assert.deepEqual(await warnings(id), []);
  });

  test("a sleep has no warning", async () => {
    const id = await curfew.storeAndStart([workflow({ ...early, nodes: [{ id: "nap", wait: { sleep: "10s" } }] })]);
    const { started_at: startedAt } = await curfew.run(id);
    await warningOf(id, "workflow");
    await passed(startedAt + 3 * EARLY_MS);
    await cancel(id);
    assert.equal((await warnings(id)).length, 1, "the run's own, of 30 s");
  });

  test("the new deadline of an extended run has its own warning", async () => {
    const id = await curfew.storeAndStart([oneRequest(`${peer.url}/hang`, { workflow: { ...early, timeout: "10s" } })]);
    await warningOf(id, "workflow");
    const extended = await curfew.api("POST", `/v1/runs/${id}/extend`, { by: "2s" });
    assert.equal(extended.status, 200, extended.text);
    const [, second] = await until("another warning", async () => {
      const found = await warnings(id);
      return found.length === 2 && found;
    });
    assert.equal(second?.["timeout_ms"], 12_000);
    await cancel(id);
  });

  test("a paused run has no warning until it resumes", async () => {
    const id = await curfew.storeAndStart([oneRequest(`${peer.url}/hang`, { workflow: { timeouts: { warn_at: 0.25 }, timeout: "10s" } })]);
    const { started_at: startedAt } = await curfew.run(id);
    assert.equal((await curfew.api("POST", `/v1/runs/${id}/pause`)).status, 200);
    await passed(startedAt + 3_500);
    assert.deepEqual(await warnings(id), []);
    assert.equal((await curfew.api("POST", `/v1/runs/${id}/resume`)).status, 200);
    await warningOf(id, "workflow");
    await cancel(id);
  });

  test("the run reports how late each layer's deadlines were enforced", async () => {
    const hanging = `${peer.url}/hang/${freshId("h")}`;
    for (const path of ["/ok", "/status/500"]) {
      const run = await curfew.runToEnd(oneRequest(peer.url + path));
      assert.equal(run.timeout_enforcement_latency_seconds, undefined, "no events");
    }

    const retried = await curfew.runToEnd(oneRequest(hanging, { node: { timeout: "200ms", on_timeout: "retry", max_retries: 1 } }));
    const joined = await curfew.runToEnd(fan({ join: { timeout: "300ms" } }), { urls: [`${peer.url}/ok?n=1`, hanging] });
    const gated = await curfew.runToEnd(
      oneRequest(hanging, { workflow: { timeout: "300ms", on_timeout: "human_gate", gate: { timeout: "300ms" } } }),
    );
    const cases: [run: RunView, layers: Record<string, number>][] = [
      [retried, { execution: 2 }],
      [joined, { synchronization: 1 }],
      [gated, { gate: 1, workflow: 1 }],
    ];
    for (const [{ timeout_enforcement_latency_seconds: told = {} }, layers] of cases) {
      const counts = Object.fromEntries(Object.entries(told).map(([layer, { count }]) => [layer, count]));
      assert.deepEqual(counts, layers);
      for (const { mean, max } of Object.values(told)) {
        assert.ok(mean >= 0 && max >= mean && max < 5, JSON.stringify(told));
      }
    }
  });
});
