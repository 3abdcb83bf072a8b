// Circuit breakers: what a peer that fails is spared, who may try again, who is told; and failures a person is asked about.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, oneTask } from "./documents.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";
import type { GateView, RunView } from "./wire.ts";

const OPEN_MS = 2_500;
const READ = "read-token-0123456789";
const OPERATE = "operate-token-0123456789";
const ADMIN = "admin-token-0123456789";

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

const once = { max_attempts: 1 };

/** A peer of its own that is down until the test says otherwise, and a key for it. */
function dependency() {
  const key = freshId("dep");
  const path = `/route-${key}`;
  const state = { status: 500 };
  peer.route(path, () => ({ status: state.status, body: { ok: state.status } }));
  return { key, url: peer.url + path, state, calls: () => peer.seen(path).length };
}

const calling = (key: string, url: string, policy?: object, more: { node?: Record<string, unknown>; workflow?: Record<string, unknown> } = {}) =>
  oneTask(
    [{ ref: "call", action: { kind: "http_request", implementation: { url }, execution: { breaker: key, ...(policy ? { retry_policy: policy } : {}) } } }],
    more,
  );

async function failedRun(key: string, url: string): Promise<RunView> {
  const run = await curfew.runToEnd(calling(key, url, once));
  assert.equal(run.status, "failed", JSON.stringify(run));
  return run;
}

async function breaker(key: string): Promise<BreakerView | undefined> {
  const answer = await curfew.api("GET", "/v1/breakers?limit=1000");
  assert.equal(answer.status, 200, answer.text);
  return answer.json.items.find((item: BreakerView) => item.key === key);
}
const stands = (key: string, state: string) =>
  until(`breaker ${key} to be ${state}`, async () => {
    const found = await breaker(key);
    return found?.state === state && found;
  });

const reset = (key: string) => curfew.api("POST", `/v1/breakers/${key}/reset`);

async function opened(): Promise<ReturnType<typeof dependency>> {
  const dependent = dependency();
  for (let n = 0; n < 3; n++) assert.equal((await failedRun(dependent.key, dependent.url)).error?.code, "http_500");
  return dependent;
}

const gateOf = (runId: string) =>
  until(`a gate of ${runId}`, async () => {
    const answer = await curfew.api("GET", "/v1/gates?limit=1000");
    return answer.json.items.find((gate: GateView) => gate.run_id === runId) as GateView | undefined;
  });

describe("breakers", { concurrency: 4 }, () => {
  test("three failures open it for every run, and the fourth call is not made", async () => {
    const { key, url, calls } = await opened();
    assert.equal(calls(), 3);
    const run = await failedRun(key, url);
    assert.deepEqual([run.error?.code, run.error?.class], ["breaker_open", "breaker_open"]);
    assert.ok(run.error?.message.includes(key), run.error?.message);
    assert.equal(calls(), 3);
    const shown = await stands(key, "open");
    assert.equal(shown.failures, 3);
    assert.equal(shown.trial_at, (shown.opened_at ?? 0) + OPEN_MS);
    assert.equal(shown.escalated_at, null);
  });

  test("a retry waits for the trial, one call is made, and its success closes the breaker", async () => {
    const { key, url, state, calls } = await opened();
    state.status = 200;
    const run = await curfew.runToEnd(calling(key, url));
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.equal(calls(), 4);
    const [token] = await curfew.tokens(run.id);
    const [step] = token?.steps ?? [];
    assert.deepEqual([step?.attempts, step?.retries?.[0]?.class], [2, "breaker_open"]);
    assert.ok((step?.retries?.[0]?.delay_ms ?? 0) <= OPEN_MS, `${step?.retries?.[0]?.delay_ms} ms`);
    const shown = await stands(key, "closed");
    assert.deepEqual([shown.failures, shown.opened_at], [0, null]);
  });

  test("of several runs that wait for the trial one makes it", async () => {
    const { key, url, calls } = await opened();
    const document = calling(key, url, { max_attempts: 2 });
    await curfew.store(document);
    const runs = await Promise.all([1, 2, 3, 4].map(() => curfew.start(document.id)));
    const ended = await Promise.all(runs.map((id) => curfew.ended(id)));
    assert.equal(calls(), 4, "three before and one trial");
    assert.deepEqual(ended.map((run) => run.error?.code).sort(), ["breaker_open", "breaker_open", "breaker_open", "http_500"]);
  });

  test("five failures escalate; a person resets it", async () => {
    const { key, url, state, calls } = await opened();
    for (const wanted of [4, 5]) {
      await until(`call ${wanted}`, async () => {
        await failedRun(key, url);
        return calls() === wanted;
      });
    }
    const shown = await stands(key, "escalated");
    assert.equal(shown.failures, 5);
    assert.ok((shown.trial_at ?? 0) - (shown.escalated_at ?? 0) === 300_000, JSON.stringify(shown));
    state.status = 200;
    const run = await failedRun(key, url);
    assert.equal(run.error?.code, "breaker_open");
    assert.match(run.error?.message ?? "", /until a person resets it/);
    const answer = await reset(key);
    assert.deepEqual([answer.status, answer.json.state, answer.json.failures], [200, "closed", 0], answer.text);
    assert.equal((await curfew.runToEnd(calling(key, url))).status, "completed");
    assert.equal(calls(), 6);
    await stands(key, "closed");
  });

  test("a 4xx is a sign of life", async () => {
    const { key, url, state, calls } = dependency();
    for (const status of [500, 500, 404, 500, 500, 429, 500, 500]) {
      state.status = status;
      assert.equal((await failedRun(key, url)).error?.code, `http_${status}`);
    }
    assert.equal(calls(), 8);
    assert.equal((await until("it to be listed", () => breaker(key)))?.state, "closed");
  });

  test("retries inside a step count one by one", async () => {
    const { key, url, calls } = dependency();
    const policy = { max_attempts: 5, initial_delay: "5ms", max_delay: "5ms", retry_on: ["server_error"] };
    const run = await curfew.runToEnd(calling(key, url, policy));
    assert.equal(run.error?.code, "breaker_open", JSON.stringify(run.error));
    assert.equal(calls(), 3);
  });

  test("a key is made of the input, and keys do not know each other", async () => {
    const { url, calls } = dependency();
    const prefix = freshId("tenant");
    const document = calling(`${prefix}:\${input.tenant}`, url, once);
    await curfew.store(document);
    for (let n = 0; n < 4; n++) await curfew.ended(await curfew.start(document.id, { tenant: "a" }));
    assert.equal(calls(), 3);
    await curfew.ended(await curfew.start(document.id, { tenant: "b" }));
    assert.equal(calls(), 4);
    assert.equal((await stands(`${prefix}:a`, "open")).failures, 3);
    assert.equal((await reset(encodeURIComponent(`${prefix}:a`))).json.state, "closed");
    const run = await curfew.ended(await curfew.start(document.id, { tenant: "no spaces" }));
    assert.equal(run.error?.code, "invalid_breaker");
  });

  test("what was never called cannot be reset, and nobody resets with a nonsense key", async () => {
    assert.equal((await reset(freshId("never"))).status, 404);
    assert.equal((await reset("no%20key")).status, 400);
    assert.equal((await curfew.api("GET", "/v1/breakers/x/reset")).status, 405);
  });
});

describe("failures a person is asked about", { concurrency: 4 }, () => {
  const asked = async (url: string, more: Record<string, unknown> = {}) => {
    const document = oneTask([{ ref: "call", action: { kind: "http_request", implementation: { url }, execution: { retry_policy: once } } }], {
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

  test("fail is the failure it was", async () => {
    const { id, gate } = await asked(dependency().url);
    await decide(id, gate, "fail");
    const run = await curfew.ended(id);
    assert.deepEqual([run.status, run.error?.code], ["failed", "http_500"]);
  });

  test("nobody in time is as fail", async () => {
    const { id } = await asked(dependency().url, { workflow: { gate: { timeout: "300ms" } } });
    assert.equal((await curfew.ended(id)).error?.code, "http_500");
  });

  test("preset flow asks about an open breaker; after the reset a retry goes through", async () => {
    const { key, url, state, calls } = await opened();
    const document = calling(key, url, once, { workflow: { timeouts: { preset: "flow" } } });
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

test("who may see breakers and who may reset them", async () => {
  const guarded = await startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify({ [READ]: "read", [OPERATE]: "operate", [ADMIN]: "admin" }) } });
  try {
    const status = async (method: string, path: string, token?: string) => (await guarded.api(method, path, undefined, token)).status;
    assert.equal(await status("GET", "/v1/breakers"), 401);
    assert.equal(await status("GET", "/v1/breakers", READ), 200);
    assert.equal(await status("POST", "/v1/breakers/x/reset", READ), 403);
    assert.equal(await status("POST", "/v1/breakers/x/reset", OPERATE), 404);
  } finally {
    await guarded.dispose();
  }
});

test("without its breakers an executor makes every call and says so", async () => {
  const bare = await startCurfew({ withoutBreakers: true });
  try {
    const { key, url, calls } = dependency();
    for (let n = 0; n < 4; n++) assert.equal((await bare.runToEnd(calling(key, url, once))).error?.code, "http_500");
    assert.equal(calls(), 4);
    assert.equal(bare.logs.filter((line) => line.includes("breakers_off")).length, 1);
  } finally {
    await bare.dispose();
  }
});

test("a breaker is as it was after a restart", async () => {
  const { mkdtempSync, rmSync } = await import("node:fs");
  const { tmpdir } = await import("node:os");
  const { join } = await import("node:path");
  const persistTo = mkdtempSync(join(tmpdir(), "curfew-breaker-"));
  const { key, url, calls } = dependency();
  const document = calling(key, url, once);
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
