// Workflows that really run, with short times, and simulations of them with mocks of the same durations: status, path, events,
// timeouts and retries agree.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, workflow, type WorkflowDocument } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { EventView, RunView, TimeoutView, TokenView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const body = { status: 200, headers: {}, body: {} };
const call = (id: string, path: string, execution: object = { retry_policy: { max_attempts: 1 } }) => ({
  id,
  kind: "http_request",
  implementation: { url: `${peer.url}${path}` },
  execution,
});

interface Seen {
  run: RunView;
  tokens: TokenView[];
  events: EventView[];
  timeouts: TimeoutView[];
}

/** What must be the same. Branches may arrive in any order. */
function summary({ run, tokens, events, timeouts }: Seen) {
  const counted = (names: string[]) => Object.fromEntries([...new Set(names)].sort().map((name) => [name, names.filter((other) => other === name).length]));
  return {
    status: run.status,
    error: run.error?.code ?? null,
    path: tokens.map((token) => `${token.node_id} ${token.status} retries ${token.retry_count}`).sort(),
    steps: tokens.flatMap((token) => token.steps.map((step) => `${token.node_id} ${step.ref} ${step.status} x${step.attempts}`)).sort(),
    events: counted(events.map(({ kind }) => kind)),
    timeouts: timeouts.map((timeout) => `${timeout.timeout_event.scope} ${timeout.timeout_event.timeout_ms} ${timeout.final_action}`),
  };
}

async function really(document: WorkflowDocument, meanwhile?: (runId: string) => Promise<void>): Promise<Seen> {
  const id = await curfew.storeAndStart([document]);
  await meanwhile?.(id);
  const run = await curfew.ended(id, 30_000);
  const timeouts = await curfew.api("GET", `/v1/runs/${id}/timeouts?limit=1000`);
  return { run, tokens: await curfew.tokens(id), events: await curfew.events(id), timeouts: timeouts.json.items };
}

async function agrees(document: WorkflowDocument, more: object, meanwhile?: (runId: string) => Promise<void>) {
  const [real, simulated] = await Promise.all([
    really(document, meanwhile),
    curfew.api("POST", "/v1/simulate", { workflow: document, ...more }),
  ]);
  assert.equal(simulated.status, 200, simulated.text);
  assert.deepEqual(summary(simulated.json), summary(real));
  return simulated.json;
}

describe("a simulation agrees with the run", { concurrency: 6 }, () => {
  test("retries of a call", async () => {
    const retries = { retry_policy: { max_attempts: 4, initial_delay: "20ms", jitter: false } };
    const document = workflow({ nodes: [{ id: "a", action_id: "ask" }], actions: [call("ask", `/flaky/${freshId("k")}/2/503`, retries)] });
    const json = await agrees(document, { mocks: [{ node: "a", times: 2, fail: { class: "server_error", code: "http_503" } }, { node: "a", result: body }] });
    assert.equal(json.calls.length, 3);
  });

  test("a node that times out, is retried and fails", async () => {
    const document = workflow({
      nodes: [{ id: "a", action_id: "ask", timeout: "300ms", on_timeout: "retry", max_retries: 2 }],
      actions: [call("ask", "/hang")],
    });
    await agrees(document, { mocks: [{ node: "a", hang: true }] });
  });

  test("the limit of the workflow", async () => {
    const document = workflow({ timeout: "600ms", on_timeout: "cancel_all", nodes: [{ id: "a", action_id: "ask" }], actions: [call("ask", "/hang")] });
    await agrees(document, { mocks: [{ node: "a", hang: true }] });
  });

  test("a gate that a person decides, and one whose time is over", async () => {
    const document = workflow({
      nodes: [{ id: "ask", gate: {} }, { id: "late", gate: { timeout: "400ms", on_timeout: "approve" } }],
      transitions: [{ from_node_id: "ask", to_node_id: "late" }],
    });
    await agrees(document, { people: [{ gate: "ask", after: "100ms", choice: "approve" }] }, async (runId) => {
      const gate = await until("the gate", async () => {
        const { json } = await curfew.api("GET", "/v1/gates?limit=100");
        return json.items.find((item: { run_id: string }) => item.run_id === runId);
      });
      assert.equal((await curfew.api("POST", `/v1/runs/${runId}/gates/${gate.id}`, { choice: "approve" })).status, 200);
    });
  });

  test("a join that does not wait for a slow branch", async () => {
    const document = workflow({
      nodes: [{ id: "begin" }, { id: "quick", action_id: "quick" }, { id: "slow", action_id: "slow" }, { id: "done" }],
      actions: [call("quick", "/ok"), call("slow", "/hang")],
      transitions: [
        { from_node_id: "begin", to_node_id: "quick", sibling_group: "both" },
        { from_node_id: "begin", to_node_id: "slow", sibling_group: "both" },
        { from_node_id: "quick", to_node_id: "done", synchronization: { sibling_group: "both", timeout: "500ms", on_timeout: "proceed_with_available" } },
        { from_node_id: "slow", to_node_id: "done", synchronization: { sibling_group: "both", timeout: "500ms", on_timeout: "proceed_with_available" } },
      ],
    });
    await agrees(document, { mocks: [{ node: "quick", result: body }, { node: "slow", hang: true }] });
  });

  test("completed work that is undone, and an end handler", async () => {
    const document = workflow({
      nodes: [
        { id: "book", action_id: "ok", compensate: { action_id: "ok" } },
        { id: "rent", action_id: "ok", compensate: { action_id: "ok" } },
        { id: "pay", action_id: "no" },
      ],
      actions: [call("ok", "/ok"), call("no", "/status/404")],
      transitions: [{ from_node_id: "book", to_node_id: "rent" }, { from_node_id: "rent", to_node_id: "pay" }],
      on_end: [{ on: ["failed"], action_id: "ok" }],
    });
    const mocks = [{ action: "no", fail: { class: "not_found", code: "http_404" } }, { action: "ok", result: body }];
    await agrees(document, { mocks });
  });
});
