// Waits: for a duration, until a time, for a signal; and sleeping runs over a restart.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, freshId, markAction, markNode, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** Two cores run workerd, this process and another test file, so deadlines may fire late. */
const LATENESS_MS = 1_500;

/** rest (the wait) -> after. */
const waitWorkflow = (wait: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  workflow({
    nodes: [{ id: "rest", wait }, markNode("after")],
    actions: [markAction("after")],
    transitions: [{ from_node_id: "rest", to_node_id: "after" }],
    output_mapping: "${state.after.visited}",
    ...more,
  });

const signal = (runId: string, name: string, body?: unknown) => curfew.api("POST", `/v1/runs/${runId}/signals/${name}`, body);

const inStatus = (id: string, status: string) =>
  until(`run ${id} to be ${status}`, async () => {
    const run = await curfew.run(id);
    return run.status === status && run;
  });

/** The wait of the run's first token lasted from `startedAt` to its end. */
async function assertSlept(runId: string, wakesAt: number, at: Curfew = curfew): Promise<void> {
  const [token] = await at.tokens(runId);
  const late = (token?.ended_at ?? 0) - wakesAt;
  assert.ok(late >= 0 && late < LATENESS_MS, `woke ${late} ms after its time`);
}

test("sleep: computed from the input; a negative length fails the run, an invalid constant is refused", async () => {
  const document = waitWorkflow({ sleep: "${input.pause}" });
  await curfew.store(document);
  const [short, negative] = await Promise.all(["300ms", -300].map((pause) => curfew.start(document.id, { pause })));
  assertCompleted(await curfew.ended(short!));
  await assertSlept(short!, ((await curfew.tokens(short!))[0]?.started_at ?? 0) + 300);
  const failed = await curfew.ended(negative!);
  assert.deepEqual(
    [failed.status, failed.error?.code, failed.error?.message],
    ["failed", "invalid_duration", "sleep of node rest: expression `input.pause`: -300 must not be negative"],
  );
  const late = waitWorkflow({ until: "tomorrow" });
  const refused = await curfew.api("PUT", `/v1/workflows/${late.id}`, late);
  assert.equal(refused.status, 422, refused.text);
  assert.deepEqual(refused.json.error.details.map(({ pointer, code }: { pointer: string; code: string }) => [pointer, code]), [["/nodes/0/wait/until", "invalid_moment"]]);
});

test("sleep: the run continues after that time and shows it", async () => {
  const document = waitWorkflow({ sleep: "700ms" });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const asleep = await curfew.run(id);
  const [token] = await curfew.tokens(id);
  assert.equal(token?.status, "suspended");
  assert.equal(asleep.status, "running", "the run waits for no gate or signal");
  const wakesAt = (token?.started_at ?? 0) + 700;
  assert.deepEqual(asleep.deadlines.find(({ kind }) => kind === "wait"), {
    kind: "wait",
    due_at: wakesAt,
    token_id: "t1",
    node_id: "rest",
  });
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, "after");
  await assertSlept(id, wakesAt);
  assert.equal("rest" in run.context.state, false, "a sleep has no result");
});

test("until: a number and an ISO 8601 timestamp, from the input", async () => {
  const document = waitWorkflow({ until: "${input.moment}" });
  await curfew.store(document);
  for (const write of [(at: number) => at, (at: number) => new Date(at).toISOString()]) {
    const moment = Date.now() + 600;
    const run = await curfew.ended(await curfew.start(document.id, { moment: write(moment) }));
    assertCompleted(run);
    await assertSlept(run.id, moment);
  }
});

test("until a time in the past: no wait", async () => {
  for (const moment of [0, 1_600_000_000_000, "2020-01-01T00:00:00Z"]) {
    const run = await curfew.runToEnd(waitWorkflow({ until: "${input.moment}" }), { moment });
    assertCompleted(run);
    assert.ok((run.duration_ms ?? 0) < LATENESS_MS, `${moment}: ${run.duration_ms} ms`);
  }
});

test("until an invalid timestamp fails the token with its place", async () => {
  for (const moment of ["tomorrow", true, null, {}]) {
    const run = await curfew.runToEnd(waitWorkflow({ until: "${input.moment}" }), { moment });
    assert.equal(run.status, "failed", JSON.stringify(moment));
    assert.equal(run.error?.class, "validation");
    assert.match(run.error?.message ?? "", /until of node rest: .* is no moment/);
  }
});

test("a signal ends the wait, its body is the result", async () => {
  const document = waitWorkflow({ signal: "paid" }, { output_mapping: "${state.rest}" });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await inStatus(id, "waiting");
  const unknown = await signal(id, "other", { no: 1 });
  assert.deepEqual([unknown.status, unknown.json.error.code], [404, "unknown_signal"]);
  assert.match(unknown.json.error.message, /signal "other": it waits for paid$/);
  assert.equal((await curfew.run(id)).status, "waiting");
  const response = await signal(id, "paid", { amount: 12 });
  assert.equal(response.status, 200, response.text);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, { amount: 12 });
});

test("signals that come before their wait are buffered, in order", async () => {
  const key = freshId("k");
  const document = workflow({
    nodes: [
      { id: "work", action_id: "ask" },
      { id: "first", wait: { signal: "news" } },
      { id: "second", wait: { signal: "news" } },
    ],
    transitions: [
      { from_node_id: "work", to_node_id: "first" },
      { from_node_id: "first", to_node_id: "second" },
    ],
    actions: [ask],
    output_mapping: ["${state.first}", "${state.second}"],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id, { url: `${peer.url}/held/${key}` });
  await until("the request at the peer", () => peer.seen(`/held/${key}`).length === 1);
  for (const body of ["one", ["two"]]) assert.equal((await signal(id, "news", JSON.stringify(body))).status, 200);
  peer.release(key);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["one", ["two"]]);
});

test("one signal ends one wait: the oldest", async () => {
  const document = workflow({
    nodes: [{ id: "start" }, { id: "a", wait: { signal: "go" } }, { id: "b", wait: { signal: "go" } }],
    transitions: ["a", "b"].map((id) => ({ from_node_id: "start", to_node_id: id })),
    output_mapping: ["${state.a}", "${state.b}"],
  });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await inStatus(id, "waiting");
  await signal(id, "go", "1");
  assert.equal((await curfew.run(id)).status, "waiting");
  await signal(id, "go", "2");
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, [1, 2]);
});

test("timeout of a signal: fail and continue", async () => {
  const failed = await curfew.runToEnd(waitWorkflow({ signal: "never", timeout_ms: 400 }));
  assert.equal(failed.status, "failed");
  assert.deepEqual([failed.error?.class, failed.error?.node_id], ["timeout", "rest"]);
  assert.equal((await curfew.tokens(failed.id))[0]?.status, "timed_out");
  const late = await signal(failed.id, "never", {});
  assert.equal(late.status, 409, late.text);

  const continued = await curfew.runToEnd(waitWorkflow({ signal: "never", timeout_ms: 400, on_timeout: "continue" }));
  assertCompleted(continued);
  assert.equal(continued.output, "after");
  assert.equal(continued.context.state.rest, null);
});

test("a wait that timed out takes its timeout route", async () => {
  const document = waitWorkflow({ signal: "never", timeout_ms: 300 });
  (document["transitions"] as object[]).push({ from_node_id: "rest", to_node_id: "after", on: "timeout" });
  const run = await curfew.runToEnd(document);
  assertCompleted(run);
  assert.equal(run.output, "after");
});

test("a signal to an unknown run is a 404, to an ended run a 409, with an invalid name a 400", async () => {
  const unknown = await signal("no-such-run", "x", {});
  assert.equal(unknown.status, 404, unknown.text);
  assert.equal(unknown.json.error.code, "not_found");
  const done = await curfew.runToEnd(waitWorkflow({ sleep_ms: 1 }));
  const finished = await signal(done.id, "x", {});
  assert.equal(finished.status, 409, finished.text);
  assert.equal(finished.json.error.code, "run_finished");
  assert.equal((await signal(done.id, "a%20b", {})).status, 400);
  assert.equal((await signal(done.id, "x", "{not json")).status, 400);
});

test("signals beyond the buffer are refused", async () => {
  const later = Array.from({ length: 7 }, (_, n) => ({ id: `later-${n}`, wait: { signal: `spam-${n}` } }));
  const document = workflow({
    nodes: [{ id: "rest", wait: { signal: "wanted" } }, ...later],
    transitions: later.map(({ id }) => ({ from_node_id: "rest", to_node_id: id, condition: "false" })),
    on_no_match: "end",
  });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  const answers = await Promise.all(Array.from({ length: 110 }, (_, n) => signal(id, `spam-${n % 7}`, { n })));
  assert.equal(answers.filter((response) => response.status === 200).length, 100);
  assert.ok(answers.filter((response) => response.status !== 200).every((response) => response.status === 429));
  assert.equal((await signal(id, "wanted", {})).status, 200, "the expected signal is received");
  assertCompleted(await curfew.ended(id));
});

test("the run's deadline ends a wait", async () => {
  const run = await curfew.runToEnd(waitWorkflow({ signal: "never" }, { timeout: "500ms" }));
  assert.equal(run.status, "timed_out");
  assert.equal((await curfew.tokens(run.id))[0]?.reason, "workflow_timeout");
});

test("sleeping, waiting and gated runs survive a restart and continue on time", async () => {
  const directory = mkdtempSync(join(tmpdir(), "curfew-test-"));
  /** One process. */
  const during = async <T>(work: (life: Curfew) => Promise<T>): Promise<T> => {
    const life = await startCurfew({ persistTo: directory });
    try {
      return await work(life);
    } finally {
      await life.dispose();
    }
  };
  try {
    const begin = async (life: Curfew, document: ReturnType<typeof waitWorkflow>) => {
      await life.store(document);
      return life.start(document.id);
    };
    const [sleeping, listening, gated, wakesAt] = await during(async (life): Promise<[string, string, string, number]> => {
      const sleeping = await begin(life, waitWorkflow({ sleep: "4s" }));
      const listening = await begin(life, waitWorkflow({ signal: "go" }, { output_mapping: "${state.rest}" }));
      const gated = await begin(life, workflow({ nodes: [{ id: "review", gate: {} }], output_mapping: "${state.review.choice}" }));
      const [token] = await life.tokens(sleeping);
      return [sleeping, listening, gated, (token?.started_at ?? 0) + 4_000];
    });
    await during(async (life) => {
      await life.api("POST", `/v1/runs/${listening}/signals/go`, { after: "the restart" });
      assert.deepEqual((await life.ended(listening)).output, { after: "the restart" });
      await life.api("POST", `/v1/runs/${gated}/gates/g1`, { choice: "reject" });
      assert.equal((await life.ended(gated)).output, "reject");
      const run = await life.ended(sleeping);
      assertCompleted(run);
      assert.equal(run.output, "after");
      await assertSlept(sleeping, wakesAt, life);
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
