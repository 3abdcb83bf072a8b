// Time settings of a deployment: presets with defaults and hard limits, bounds, and adaptive timeouts.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freshId, oneRequest, oneTask, request, set } from "./document-builders.ts";
import { startCurfew, type ApiResponse, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

const MINUTE_MS = 60_000;

let flow: Curfew;
let service: Curfew;
let bounded: Curfew;
let misconfigured: Curfew;
let peer: Peer;
before(async () => {
  const vars: Record<string, string>[] = [
    { CURFEW_PRESET: "flow" },
    { CURFEW_PRESET: "service", CURFEW_RETRY_DELAY_MS: "10" },
    { CURFEW_TIMEOUT_MIN_MS: "200", CURFEW_TIMEOUT_MAX_MS: "3600000" },
    { CURFEW_PRESET: "flow", CURFEW_TIMEOUT_MAX_MS: "an hour" },
  ];
  [flow, service, bounded, misconfigured, peer] = (await Promise.all([
    ...vars.map((vars) => startCurfew({ vars })),
    startPeer(),
  ])) as [Curfew, Curfew, Curfew, Curfew, Peer];
});
after(() => Promise.all([flow, service, bounded, misconfigured].map((curfew) => curfew.dispose()).concat(peer.close())));

type Parts = Parameters<typeof oneTask>[1];

/** A workflow without timeouts, except those that the test adds. */
const withoutTimeouts = (more: Parts = {}) =>
  oneRequest("${input.url}", { ...more, workflow: { timeout: undefined, on_timeout: undefined, ...more.workflow } });

const put = (at: Curfew, document: { id: string }) => at.api("PUT", `/v1/workflows/${document.id}`, document);

interface Problem {
  pointer: string;
  code: string;
  message: string;
}

function problems(response: ApiResponse): Problem[] {
  assert.equal(response.status, 422, response.text);
  return response.json.error.details;
}

describe("presets", { concurrency: 6 }, () => {
  test("each preset has its defaults for runs and their work", async () => {
    const input = { url: `${peer.url}/ok` };
    const one = await flow.runToEnd(withoutTimeouts(), input);
    assert.equal(one.timeout_ms, 30 * MINUTE_MS);
    assert.equal((await flow.tokens(one.id))[0]?.timeout_ms, 5 * MINUTE_MS, "a task of one request is a tool");
    const two = await flow.runToEnd(oneTask([request({ url: "${input.url}" }), set({ a: 1 })], { workflow: { timeout: undefined } }), input);
    assert.equal((await flow.tokens(two.id))[0]?.timeout_ms, 10 * MINUTE_MS, "a task of several steps is a step");
    const short = await service.runToEnd(withoutTimeouts(), input);
    assert.equal(short.timeout_ms, 30_000);
    assert.equal((await service.tokens(short.id))[0]?.timeout_ms, null, "bounded by its run");
  });

  test("a workflow may choose its preset and its defaults", async () => {
    const input = { url: `${peer.url}/ok` };
    const timeouts = { preset: "flow", tool: "90s", flow: "20m" };
    const run = await service.runToEnd(withoutTimeouts({ workflow: { timeouts } }), input);
    assert.equal(run.timeout_ms, 20 * MINUTE_MS);
    assert.equal((await service.tokens(run.id))[0]?.timeout_ms, 90_000);
    const usual = await flow.runToEnd(withoutTimeouts({ workflow: { timeouts: { preset: "standard" } } }), input);
    assert.equal(usual.timeout_ms, 60 * MINUTE_MS);
    assert.equal((await flow.tokens(usual.id))[0]?.timeout_ms, null);
  });

  test("a value over its hard limit is refused with its pointer, unless the document allows it", async () => {
    const document = withoutTimeouts({ workflow: { timeout: "46m" }, node: { timeout: "11m" } });
    const found = problems(await put(flow, document));
    assert.deepEqual(
      found.map(({ pointer, code }) => [pointer, code]),
      [["/nodes/0/timeout", "over_hard_limit"], ["/timeout", "over_hard_limit"]],
    );
    assert.match(found[0]?.message ?? "", /11m0s is over the hard limit of 10m0s for a tool.*allow_exceed_hard/);
    document["allow_exceed_hard"] = true;
    document.nodes[0]!["allow_exceed_hard"] = true;
    const run = await flow.runToEnd(document, { url: `${peer.url}/ok` });
    assert.equal(run.timeout_ms, 46 * MINUTE_MS);
    assert.equal((await flow.tokens(run.id))[0]?.timeout_ms, 11 * MINUTE_MS);
    assert.equal((await put(bounded, withoutTimeouts({ workflow: { timeout: "46m" } }))).status, 201, "standard has no hard limits");
  });

  test("a start cannot exceed the hard limit, nor go below the minimum", async () => {
    const document = withoutTimeouts();
    await service.store(document);
    const ask = (timeout_ms: number) =>
      service.api("POST", `/v1/workflows/${document.id}/runs`, { input: { url: `${peer.url}/ok` }, timeout_ms });
    for (const timeoutMs of [60 * MINUTE_MS + 1, 999]) {
      const response = await ask(timeoutMs);
      assert.deepEqual([response.status, response.json.error.pointer], [422, "/timeout_ms"], response.text);
    }
    for (const timeoutMs of [60 * MINUTE_MS, 1_000]) assert.equal((await ask(timeoutMs)).status, 201);
    const [least] = problems(await put(service, withoutTimeouts({ workflow: { timeout: "999ms" } })));
    assert.deepEqual([least?.pointer, least?.code], ["/timeout", "under_minimum"]);
  });

  test("the bounds of a deployment apply everywhere", async () => {
    const found = problems(await put(bounded, withoutTimeouts({ workflow: { timeout: "2h" }, node: { timeout: "100ms" } })));
    assert.deepEqual(found.map(({ pointer }) => pointer), ["/nodes/0/timeout", "/timeout"]);
    const document = withoutTimeouts({ workflow: { timeout: "1h" }, node: { timeout: "200ms" } });
    assert.equal((await put(bounded, document)).status, 201);
    for (const timeout_ms of [100, 2 * 60 * MINUTE_MS]) {
      const response = await bounded.api("POST", `/v1/workflows/${document.id}/runs`, { timeout_ms });
      assert.deepEqual([response.status, response.json.error.pointer], [422, "/timeout_ms"], response.text);
    }
  });

  test("an invalid variable is logged, and the defaults apply", async () => {
    const run = await misconfigured.runToEnd(withoutTimeouts(), { url: `${peer.url}/ok` });
    assert.equal(run.timeout_ms, 60 * MINUTE_MS, "no partial configuration");
    const told = misconfigured.logs.filter((line) => line.includes("invalid_setting"));
    assert.ok(told.length > 0);
    assert.match(told[0] ?? "", /CURFEW_TIMEOUT_MAX_MS.*an hour/);
  });

  test("a timeout adapts to the last twenty runs, and each token shows its reason", async () => {
    const document = withoutTimeouts({ node: { timeout: "adaptive" } });
    await service.store(document);
    const input = { url: `${peer.url}/slow/40` };
    const token = async (runId: string) => (await service.tokens(runId))[0];
    const first = await service.ended(await service.start(document.id, input));
    const unlearnt = await token(first.id);
    assert.deepEqual([unlearnt?.timeout_ms, unlearnt?.timeout_reason], [null, "adaptive: 0 of 20 samples, so no limit"]);

    const database = await service.miniflare.getD1Database("DB", "curfew");
    const samples = async () => {
      const found = await database.prepare("SELECT * FROM latencies WHERE workflow_id = ?").bind(document.id).all();
      return found.results as { node_id: string; run_id: string; token_id: string; ms: number; at: number }[];
    };
    await until("the first sample", async () => (await samples()).length === 1);
    const second = await token((await service.ended(await service.start(document.id, input))).id);
    assert.equal(second?.timeout_reason, "adaptive: 1 of 20 samples, so no limit");
    const failed = await service.ended(await service.start(document.id, { url: `${peer.url}/status/500` }));
    assert.equal(failed.status, "failed");

    const more = await Promise.all(Array.from({ length: 18 }, () => service.start(document.id, input)));
    await Promise.all(more.map((id) => service.ended(id)));
    const rows = await until("twenty samples", async () => {
      const rows = await samples();
      return rows.length === 20 && rows;
    });
    assert.ok(!rows.some(({ run_id }) => run_id === failed.id), "a run that failed says nothing about how long it takes");
    assert.ok(rows.every(({ node_id, token_id, ms }) => node_id === "work" && token_id === "t1" && ms >= 40));
    const slowest = Math.max(...rows.map(({ ms }) => ms));

    const learnt = await token((await service.ended(await service.start(document.id, input))).id);
    assert.equal(learnt?.timeout_ms, Math.max(3 * slowest, 1_000));
    assert.match(learnt?.timeout_reason ?? "", /^adaptive: 3 x p99 .* of 20 samples(, raised to 1s)?$/);
    const hung = await service.ended(await service.start(document.id, { url: `${peer.url}/hang/${freshId("h")}` }));
    assert.deepEqual([hung.status, hung.error?.code], ["failed", "execution_timeout"]);
  });

  test("an adaptive timeout respects the hard limit, and the default applies until there are samples", async () => {
    const document = withoutTimeouts({ node: { timeout: "adaptive" } });
    await flow.store(document);
    const database = await flow.miniflare.getD1Database("DB", "curfew");
    const insert = database.prepare("INSERT INTO latencies VALUES (?, 'work', ?, ?, 't1', ?)");
    const rows = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, n) => insert.bind(document.id, from + n, `r${from + n}`, 8 * MINUTE_MS));
    const token = async () => (await flow.tokens((await flow.ended(await flow.start(document.id, { url: `${peer.url}/ok` }))).id))[0];
    await database.batch(rows(0, 19));
    const before = await token();
    assert.deepEqual(
      [before?.timeout_ms, before?.timeout_reason],
      [5 * MINUTE_MS, "adaptive: 19 of 20 samples, so the default of 5m0s"],
    );
    await database.batch(rows(19, 300));
    const learnt = await token();
    assert.equal(learnt?.timeout_ms, 10 * MINUTE_MS);
    assert.equal(learnt?.timeout_reason, "adaptive: 3 x p99 8m0s of 200 samples, cut to the hard limit of 10m0s");
  });
});
