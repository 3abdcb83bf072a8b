// The whole history of a run: every event in the order of commits, with the same numbers at every reading.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fan, freshId, oneRequest, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { EventView } from "./api-types.ts";

let curfew: Curfew;
let peer: Peer;
const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(async () => {
  await Promise.all([curfew.dispose(), peer.close()]);
  rmSync(directory, { recursive: true, force: true });
});

/** The whole history, read in pages of this length. Checks that numbers rise without a gap. */
async function history(runId: string, limit: number, at: Curfew = curfew): Promise<EventView[]> {
  const events: EventView[] = [];
  for (let cursor: string | null = "0"; cursor !== null; ) {
    const page = await at.api("GET", `/v1/runs/${runId}/events?after=${cursor}&limit=${limit}`);
    assert.equal(page.status, 200, page.text);
    assert.ok(page.json.items.length <= limit, page.text);
    events.push(...page.json.items);
    cursor = page.json.next_cursor;
  }
  assert.deepEqual(events.map(({ seq }) => seq), events.map((_, index) => index + 1));
  return events;
}

const shown = ({ kind, node_id }: EventView) => (node_id === undefined ? kind : `${kind} ${node_id}`);
const places = (events: EventView[], kinds: string[]) => kinds.map((kind) => events.findIndex((event) => shown(event) === kind));

test("branches, a gate, a signal and a sub-workflow are in the history", async () => {
  const child = workflow({ nodes: [{ id: "only" }] });
  await curfew.store(child);
  const document = workflow({
    nodes: [
      { id: "start" },
      { id: "part" },
      { id: "review", gate: { timeout: "20s" } },
      { id: "paid", wait: { signal: "paid" } },
      { id: "call", workflow_id: child.id },
    ],
    transitions: [
      { id: "each", from_node_id: "start", to_node_id: "part", spawn_count: 3 },
      { from_node_id: "part", to_node_id: "review", synchronization: { strategy: "all", sibling_group: "each" } },
      { from_node_id: "review", to_node_id: "paid" },
      { from_node_id: "paid", to_node_id: "call" },
    ],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id, {});
  await until("the gate", async () => (await curfew.events(id, "gate_opened")).length === 1);
  const early = await history(id, 5);
  const gate = early.find(({ kind }) => kind === "gate_opened")!["gate_id"];
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/gates/${gate}`, { choice: "approve" })).status, 200);
  assert.equal((await curfew.api("POST", `/v1/runs/${id}/signals/paid`, { sum: 3 })).status, 200);
  assert.equal((await curfew.ended(id)).status, "completed");
  const all = await history(id, 7);
  assert.deepEqual(all.slice(0, early.length), early, "what was read once stays as it was");
  assert.deepEqual(await history(id, 1000), all);
  const order = [
    "run_started", "token_created start", "token_completed start", "fan_out_started start", "token_created part",
    "fan_in_started review", "fan_in_completed review", "token_created review", "gate_opened review", "gate_decided review",
    "token_completed review", "token_created paid", "signal_received paid", "token_completed paid", "token_created call",
    "subworkflow_started call", "subworkflow_ended call", "token_completed call", "run_completed",
  ];
  const found = places(all, order);
  assert.ok(found.every((place) => place >= 0), JSON.stringify(all.map(shown)));
  assert.deepEqual(found, found.toSorted((a, b) => a - b), JSON.stringify(all.map(shown)));
  assert.equal(all.at(-1)?.kind, "run_completed");
  assert.equal(all.filter(({ kind }) => kind === "token_created").length, 7);
  const started = all.find(({ kind }) => kind === "subworkflow_started");
  assert.equal((await curfew.run(String(started?.["child_run_id"]))).status, "completed");
});

test("the limit of a run, and the wait of a join, time out each token", async () => {
  const hanging = fan({
    spawn: { foreach: { collection: "input.urls", item_var: "url" } },
    workflow: { timeout: "1s", on_timeout: "cancel_all" },
  });
  await curfew.store(hanging);
  const path = `/hang/${freshId("history")}`;
  const urls = [1, 2, 3].map((n) => `${peer.url}${path}?n=${n}`);
  const run = await curfew.ended(await curfew.start(hanging.id, { urls }));
  assert.equal(run.status, "timed_out");
  const all = await history(run.id, 1000);
  const timedOut = all.filter(({ kind }) => kind === "token_timed_out");
  assert.deepEqual(
    timedOut.map((event) => [event["timeout_type"], event["timeout_duration_ms"], event["policy_applied"], event["workflow_run_id"]]),
    [1, 2, 3].map(() => ["workflow", 1000, "cancel_all", run.id]),
  );
  assert.equal(all.at(-1)?.kind, "run_timed_out");
});

test("numbers go on after the process was restarted", async () => {
  const open = () => startCurfew({ persistTo: directory });
  const document = workflow({ nodes: [{ id: "a" }, { id: "b", wait: { signal: "go" } }, { id: "c" }], transitions: [{ from_node_id: "a", to_node_id: "b" }, { from_node_id: "b", to_node_id: "c" }] });
  const first = await open();
  await first.store(document);
  const id = await first.start(document.id, {});
  await until("the wait", async () => (await first.run(id)).status === "waiting");
  const before = await history(id, 1000, first);
  await first.dispose();
  const second = await open();
  try {
    assert.deepEqual(await history(id, 2, second), before);
    await second.api("POST", `/v1/runs/${id}/signals/go`, {});
    await second.ended(id);
    const all = await history(id, 2, second);
    assert.deepEqual(all.slice(0, before.length), before);
    assert.deepEqual(all.slice(before.length).map(shown), ["signal_received b", "token_completed b", "token_created c", "token_completed c", "run_completed"]);
  } finally {
    await second.dispose();
  }
});

test("an attempt that times out and is retried has both dispatches in the history", async () => {
  const path = `/hang/${freshId("history")}`;
  const document = oneRequest("${input.url}", { node: { timeout: "300ms", on_timeout: "retry", max_retries: 1 } });
  await curfew.store(document);
  const run = await curfew.ended(await curfew.start(document.id, { url: peer.url + path }));
  assert.equal(run.status, "failed");
  const all = await history(run.id, 1000);
  const kinds = ["run_started", "token_created", "token_dispatched", "token_timed_out", "token_retried", "token_dispatched", "token_timed_out", "run_failed"];
  assert.deepEqual(all.map(({ kind }) => kind), kinds);
  const dispatched = all.filter(({ kind }) => kind === "token_dispatched");
  assert.deepEqual(dispatched.map((event) => event["epoch"]), [1, 2]);
});
