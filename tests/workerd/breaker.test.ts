// Circuit breakers: calls that are not made, trials, escalation and resets; and failures that open a gate.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, oneTask } from "./document-builders.ts";
import { ADMIN, OPERATE, READ, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { GateView, RunView } from "./api-types.ts";

const OPEN_MS = 2_500;

interface BreakerView {
  key: string;
  state: string;
  failures: number;
  opened_at: number | null;
  trial_at: number | null;
  escalated_at: number | null;
  updated_at: number;
}

let curfew: Curfew;
let peer: Peer;
before(async () => {
  const executorVars = { CURFEW_BREAKER_OPEN_MS: String(OPEN_MS) };
  [curfew, peer] = await Promise.all([startCurfew({ executorVars }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const singleAttempt = { max_attempts: 1 };

/** A peer that is down until the test changes it, with its own breaker key. */
function dependency() {
  const key = freshId("dep");
  const path = `/route-${key}`;
  const state = { status: 500 };
  peer.route(path, () => ({ status: state.status, body: { ok: state.status } }));
  return { key, url: peer.url + path, state, calls: () => peer.seen(path).length };
}

const callWithBreaker = (key: string, url: string, policy?: object, more: { node?: Record<string, unknown>; workflow?: Record<string, unknown> } = {}) =>
  oneTask(
    [{ ref: "call", action: { kind: "http_request", implementation: { url }, execution: { breaker: key, ...(policy ? { retry_policy: policy } : {}) } } }],
    more,
  );

async function failedRun(key: string, url: string): Promise<RunView> {
  const run = await curfew.runToEnd(callWithBreaker(key, url, singleAttempt));
  assert.equal(run.status, "failed", JSON.stringify(run));
  return run;
}

async function breaker(key: string): Promise<BreakerView | undefined> {
  const response = await curfew.api("GET", "/v1/breakers?limit=1000");
  assert.equal(response.status, 200, response.text);
  return response.json.items.find((item: BreakerView) => item.key === key);
}
const untilState = (key: string, state: string) =>
  until(`breaker ${key} to be ${state}`, async () => {
    const found = await breaker(key);
    return found?.state === state && found;
  });

const reset = (key: string) => curfew.api("POST", `/v1/breakers/${key}/reset`);

async function openedBreaker(): Promise<ReturnType<typeof dependency>> {
  const dependent = dependency();
  for (let n = 0; n < 3; n++) assert.equal((await failedRun(dependent.key, dependent.url)).error?.code, "http_500");
  return dependent;
}

const gateOf = (runId: string) =>
  until(`a gate of ${runId}`, async () => {
    const response = await curfew.api("GET", "/v1/gates?limit=1000");
    return response.json.items.find((gate: GateView) => gate.run_id === runId) as GateView | undefined;
  });

describe("breakers", { concurrency: 4 }, () => {
  test("three failures open the breaker for every run, and the fourth call is not made", async () => {
    const { key, url, calls } = await openedBreaker();
    assert.equal(calls(), 3);
    const run = await failedRun(key, url);
    assert.deepEqual([run.error?.code, run.error?.class], ["breaker_open", "breaker_open"]);
    assert.ok(run.error?.message.includes(key), run.error?.message);
    assert.equal(calls(), 3);
    const shown = await untilState(key, "open");
    assert.equal(shown.failures, 3);
    assert.equal(shown.trial_at, (shown.opened_at ?? 0) + OPEN_MS);
    assert.equal(shown.escalated_at, null);
  });

  test("a retry waits for the trial, one call is made, and its success closes the breaker", async () => {
    const { key, url, state, calls } = await openedBreaker();
    state.status = 200;
    const run = await curfew.runToEnd(callWithBreaker(key, url));
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.equal(calls(), 4);
    const [token] = await curfew.tokens(run.id);
    const [step] = token?.steps ?? [];
    assert.deepEqual([step?.attempts, step?.retries?.[0]?.class], [2, "breaker_open"]);
    assert.ok((step?.retries?.[0]?.delay_ms ?? 0) <= OPEN_MS, `${step?.retries?.[0]?.delay_ms} ms`);
    const shown = await untilState(key, "closed");
    assert.deepEqual([shown.failures, shown.opened_at], [0, null]);
  });

  test("of several runs that wait for the trial one makes it", async () => {
    const { key, url, calls } = await openedBreaker();
    const document = callWithBreaker(key, url, { max_attempts: 2 });
    await curfew.store(document);
    const runs = await Promise.all([1, 2, 3, 4].map(() => curfew.start(document.id)));
    const ended = await Promise.all(runs.map((id) => curfew.ended(id)));
    assert.equal(calls(), 4, "three before and one trial");
    assert.deepEqual(ended.map((run) => run.error?.code).sort(), ["breaker_open", "breaker_open", "breaker_open", "http_500"]);
  });

  test("five failures escalate the breaker, and an operator resets it", async () => {
    const { key, url, state, calls } = await openedBreaker();
    for (const wanted of [4, 5]) {
      await until(`call ${wanted}`, async () => {
        await failedRun(key, url);
        return calls() === wanted;
      });
    }
    const shown = await untilState(key, "escalated");
    assert.equal(shown.failures, 5);
    assert.ok((shown.trial_at ?? 0) - (shown.escalated_at ?? 0) === 300_000, JSON.stringify(shown));
    state.status = 200;
    const run = await failedRun(key, url);
    assert.equal(run.error?.code, "breaker_open");
    assert.match(run.error?.message ?? "", /until a person resets it/);
    const response = await reset(key);
    assert.deepEqual([response.status, response.json.state, response.json.failures], [200, "closed", 0], response.text);
    assert.equal((await curfew.runToEnd(callWithBreaker(key, url))).status, "completed");
    assert.equal(calls(), 6);
    await untilState(key, "closed");
  });

  test("a 4xx does not count as a failure", async () => {
    const { key, url, state, calls } = dependency();
    for (const status of [500, 500, 404, 500, 500, 429, 500, 500]) {
      state.status = status;
      assert.equal((await failedRun(key, url)).error?.code, `http_${status}`);
    }
    assert.equal(calls(), 8);
    assert.equal((await until("it to be listed", () => breaker(key)))?.state, "closed");
  });

  test("each retry inside a step counts", async () => {
    const { key, url, calls } = dependency();
    const policy = { max_attempts: 5, initial_delay: "5ms", max_delay: "5ms", retry_on: ["server_error"] };
    const run = await curfew.runToEnd(callWithBreaker(key, url, policy));
    assert.equal(run.error?.code, "breaker_open", JSON.stringify(run.error));
    assert.equal(calls(), 3);
  });

  test("a key may depend on the input, and keys are independent", async () => {
    const { url, calls } = dependency();
    const prefix = freshId("tenant");
    const document = callWithBreaker(`${prefix}:\${input.tenant}`, url, singleAttempt);
    await curfew.store(document);
    for (let n = 0; n < 4; n++) await curfew.ended(await curfew.start(document.id, { tenant: "a" }));
    assert.equal(calls(), 3);
    await curfew.ended(await curfew.start(document.id, { tenant: "b" }));
    assert.equal(calls(), 4);
    assert.equal((await untilState(`${prefix}:a`, "open")).failures, 3);
    assert.equal((await reset(encodeURIComponent(`${prefix}:a`))).json.state, "closed");
    const run = await curfew.ended(await curfew.start(document.id, { tenant: "no spaces" }));
    assert.equal(run.error?.code, "invalid_breaker");
  });

  test("an unknown breaker cannot be reset, and an invalid key is refused", async () => {
    assert.equal((await reset(freshId("never"))).status, 404);
    assert.equal((await reset("no%20key")).status, 400);
    assert.equal((await curfew.api("GET", "/v1/breakers/x/reset")).status, 405);
  });
});

describe("failures that open a gate", { concurrency: 4 }, () => {
  const asked = async (url: string, more: Record<string, unknown> = {}) => {
    const document = oneTask([{ ref: "call", action: { kind: "http_request", implementation: { url }, execution: { retry_policy: singleAttempt } } }], {
      node: { escalate_on: ["server_error"] },
      ...more,
    });
    await curfew.store(document);
    const id = await curfew.start(document.id);
    return { id, gate: await gateOf(id) };
  };
  const decide = (id: string, gate: GateView, choice: string) =>
    curfew.api("POST", `/v1/runs/${id}/gates/${gate.id}`, { choice, by: "ada" });

  test("the gate shows the error, and a retry makes the call again", async () => {
    const { url, state, calls } = dependency();
    const { id, gate } = await asked(url);
    assert.deepEqual([gate.kind, gate.node_id, gate.token_id, gate.choices], ["escalation", "work", "t1", ["retry", "fail", "skip"]]);
    assert.equal(gate.prompt.error.code, "http_500");
    assert.equal((await curfew.run(id)).status, "waiting");
    const [token] = await curfew.tokens(id);
    assert.deepEqual([token?.status, token?.error?.code], ["awaiting_human", "http_500"]);
    assert.equal((await decide(id, gate, "retry")).status, 200);
    const second = await until("the second gate", async () => {
      const next = await gateOf(id);
      return next.id !== gate.id && next;
    });
    state.status = 200;
    assert.equal((await decide(id, gate, "retry")).status, 409, "the first gate is closed");
    assert.equal((await decide(id, second, "retry")).status, 200);
    const run = await curfew.ended(id);
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.equal(calls(), 3);
    const kinds = (await curfew.events(id, "gate_opened", "gate_decided")).map(({ kind }) => kind);
    assert.deepEqual(kinds, ["gate_opened", "gate_decided", "gate_opened", "gate_decided"]);
  });

  test("skip completes the node without a result", async () => {
    const { id, gate } = await asked(dependency().url);
    await decide(id, gate, "skip");
    const run = await curfew.ended(id);
    assert.deepEqual([run.status, run.output], ["completed", null]);
  });

  test("the decision fail fails the token with the original error", async () => {
    const { id, gate } = await asked(dependency().url);
    await decide(id, gate, "fail");
    const run = await curfew.ended(id);
    assert.deepEqual([run.status, run.error?.code], ["failed", "http_500"]);
  });

  test("an undecided gate has the effect of fail", async () => {
    const { id } = await asked(dependency().url, { workflow: { gate: { timeout: "300ms" } } });
    assert.equal((await curfew.ended(id)).error?.code, "http_500");
  });

  test("with the preset flow an open breaker opens a gate, and a retry after the reset succeeds", async () => {
    const { key, url, state, calls } = await openedBreaker();
    const document = callWithBreaker(key, url, singleAttempt, { workflow: { timeouts: { preset: "flow" } } });
    await curfew.store(document);
    const id = await curfew.start(document.id);
    const gate = await gateOf(id);
    assert.equal(gate.prompt.error.code, "breaker_open");
    state.status = 200;
    assert.equal((await reset(key)).json.state, "closed");
    assert.equal((await decide(id, gate, "retry")).status, 200);
    assert.equal((await curfew.ended(id)).status, "completed");
    assert.equal(calls(), 4);
  });
});

test("read lists breakers, admin resets them", async () => {
  const guarded = await startCurfew({ vars: roleVars });
  try {
    const status = async (method: string, path: string, token?: string) => (await guarded.api(method, path, undefined, token)).status;
    assert.equal(await status("GET", "/v1/breakers"), 401);
    assert.equal(await status("GET", "/v1/breakers", READ), 200);
    assert.equal(await status("POST", "/v1/breakers/x/reset", READ), 403);
    assert.equal(await status("POST", "/v1/breakers/x/reset", OPERATE), 403);
    assert.equal(await status("POST", "/v1/breakers/x/reset", ADMIN), 404);
  } finally {
    await guarded.dispose();
  }
});

test("an executor without the breaker binding makes every call and logs it", async () => {
  const bare = await startCurfew({ withoutBreakers: true });
  try {
    const { key, url, calls } = dependency();
    for (let n = 0; n < 4; n++) assert.equal((await bare.runToEnd(callWithBreaker(key, url, singleAttempt))).error?.code, "http_500");
    assert.equal(calls(), 4);
    assert.equal(bare.logs.filter((line) => line.includes("breakers_off")).length, 1);
  } finally {
    await bare.dispose();
  }
});

test("a breaker keeps its state over a restart", async () => {
  const { mkdtempSync, rmSync } = await import("node:fs");
  const { tmpdir } = await import("node:os");
  const { join } = await import("node:path");
  const persistTo = mkdtempSync(join(tmpdir(), "curfew-breaker-"));
  const { key, url, calls } = dependency();
  const document = callWithBreaker(key, url, singleAttempt);
  try {
    const first = await startCurfew({ persistTo });
    for (let n = 0; n < 3; n++) await first.runToEnd(document);
    await first.dispose();
    const second = await startCurfew({ persistTo });
    const run = await second.ended(await second.start(document.id));
    await second.dispose();
    assert.deepEqual([run.error?.code, calls()], ["breaker_open", 3]);
  } finally {
    rmSync(persistTo, { recursive: true, force: true });
  }
});
