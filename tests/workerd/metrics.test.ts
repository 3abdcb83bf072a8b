// GET /metrics: what runs did, exactly once, through lost memory, restarts and repeated messages.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fan, freshId, oneRequest, oneTask, set, workflow } from "./document-builders.ts";
import { parseExposition, type Exposition } from "./exposition.ts";
import { ADMIN, READ, roleVars, startCurfew, type Curfew } from "./harness.ts";
import { differences, expectedSamples } from "./metrics-truth.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let peer: Peer;
const directory = mkdtempSync(join(tmpdir(), "curfew-metrics-"));
before(async () => {
  peer = await startPeer();
});
after(async () => {
  await peer.close();
  rmSync(directory, { recursive: true, force: true });
});

async function scrape(curfew: Curfew, token?: string): Promise<Exposition> {
  const response = await curfew.api("GET", "/metrics", undefined, token);
  assert.equal(response.status, 200, response.text);
  return parseExposition(response.text);
}

/** Waits until the counters are the truth about the runs, and no others. */
async function untilTrue(curfew: Curfew, ids: string[]): Promise<Exposition> {
  const expected = await expectedSamples(curfew, ids);
  let wrong: string[] = [];
  try {
    return await until("the metrics to be true", async () => {
      const exposition = await scrape(curfew);
      wrong = differences(exposition.samples, expected);
      return wrong.length === 0 && exposition;
    }, 10_000, 100);
  } catch (error) {
    throw new Error(`${wrong.join("\n")}\n${error}`);
  }
}

const retrying = (url: string, more: object = {}) =>
  oneTask([{ ref: "call", action: { kind: "http_request", implementation: { url }, execution: { retry_policy: { max_attempts: 4, initial_delay: "1ms", ...more } } } }]);

const sweep = async (curfew: Curfew): Promise<void> => {
  const before = curfew.logLines("sweep").length;
  await fetch(`${curfew.url}/cdn-cgi/local/scheduled?cron=*+*+*+*+*`);
  await until("the sweep's log line", () => curfew.logLines("sweep")[before]);
};

describe("a zoo of runs", () => {
  const ids: string[] = [];
  let curfew: Curfew;
  const options = { persistTo: directory, vars: { CURFEW_RETRY_DELAY_MS: "10", CURFEW_GRACE_MS: "50" }, executorVars: { CURFEW_BREAKER_OPEN_MS: "600000" } };
  before(async () => {
    curfew = await startCurfew(options);
  });
  after(() => curfew.dispose());

  const ended = async (document: { id: string }, input: unknown, status: string): Promise<string> => {
    const run = await curfew.runToEnd(document, input);
    assert.equal(run.status, status, JSON.stringify(run.error));
    ids.push(run.id);
    return run.id;
  };

  test("ends, timeouts of each type, retries of each class and late results are counted", async () => {
    const direct = { dispatch: "direct" };
    await ended(oneTask([set({ a: 1 })]), {}, "completed");
    await ended(oneTask([set({ a: 1 })], { task: direct }), {}, "completed");
    await ended(retrying(`${peer.url}/flaky/${freshId("k")}/2/500`), {}, "completed");
    await ended(retrying(`${peer.url}/flaky/${freshId("k")}/1/429`), {}, "completed");
    await ended(oneRequest(`${peer.url}/status/404`), {}, "failed");
    // The limit of the run, of a node (retried once), of a join, of a gate.
    await ended(oneRequest(`${peer.url}/hang`, { workflow: { timeout: "300ms" } }), {}, "timed_out");
    await ended(oneRequest(`${peer.url}/hang`, { node: { timeout: "200ms", on_timeout: "retry", max_retries: 1 } }), {}, "failed");
    await ended(fan({ join: { strategy: "all", timeout: "400ms", on_timeout: "proceed_with_available" } }), { urls: [`${peer.url}/ok?n=1`, `${peer.url}/hang?n=2`] }, "completed");
    await ended(workflow({ nodes: [{ id: "ask", gate: { prompt: "?", timeout: "200ms", on_timeout: "reject" } }] }), {}, "completed");
    // A branch that its join did not wait for.
    const key = freshId("k");
    const late = await ended(fan({ join: { strategy: "any" } }), { urls: [`${peer.url}/ok?n=1`, `${peer.url}/held/${key}?n=2`] }, "completed");
    peer.release(key);
    await until("the late result", async () => (await curfew.events(late, "late_result_discarded"))[0]);

    const { samples } = await untilTrue(curfew, ids);
    for (const [name, least] of [
      ['workflow_executions_total{status="timed_out"}', 1],
      ['workflow_executions_timed_out_total{timeout_type="workflow"}', 1],
      ['workflow_executions_timed_out_total{timeout_type="execution"}', 2],
      ['workflow_executions_timed_out_total{timeout_type="synchronization"}', 1],
      ['workflow_executions_timed_out_total{timeout_type="gate"}', 1],
      ['action_retries_total{class="server_error"}', 2],
      ['action_retries_total{class="rate_limited"}', 1],
      ['action_retries_total{class="timeout"}', 1],
      ["late_results_total", 1],
    ] as const) assert.equal(samples.get(name), least, name);
    const rate = samples.get("workflow_executions_timeout_rate")!;
    assert.ok(Math.abs(rate - 1 / ids.length) < 1e-9, `${rate} of ${ids.length}`);
  });

  test("retries and restarts of a run are starts and ends of their own", async () => {
    const key = freshId("k");
    const id = await ended(oneRequest(`${peer.url}/flaky/${key}/2/500`), {}, "failed");
    for (const [control, body, status] of [["retry", { mode: "retry_step" }, "failed"], ["restart", {}, "completed"]] as const) {
      assert.equal((await curfew.api("POST", `/v1/runs/${id}/${control}`, body)).status, 200);
      assert.equal((await curfew.ended(id)).status, status);
    }
    await untilTrue(curfew, ids);
  });

  test("rows are counted as they are billed", async () => {
    const before = (await scrape(curfew)).samples.get("rows_written_total")!;
    const document = oneTask([set({ a: 1 })], { task: { dispatch: "direct" } });
    await ended(document, {}, "completed");
    const bill = (await curfew.api("GET", `/v1/runs/${ids.at(-1)}`)).headers.get("x-curfew-bill") ?? "";
    const rows = Number(/rows_written=(\d+)/.exec(bill)?.[1]);
    assert.ok(rows >= 7, bill);
    await until("the rows of the run", async () => (await scrape(curfew)).samples.get("rows_written_total")! === before + rows);
  });

  test("repeated and reordered messages add nothing", async () => {
    const document = oneTask([set({ a: 1 })]);
    const id = await ended(document, {}, "completed");
    await untilTrue(curfew, ids);
    const { json } = await curfew.sendToRun(id, "probe");
    const queue = await curfew.miniflare.getQueueProducer<string>("INDEX_QUEUE", "curfew");
    const older = { ...json.standing, revision: json.standing.revision - 1, metrics: { starts: 9 } };
    const saved = curfew.logLines("index_saved").length;
    for (const message of [json.standing, older, json.standing]) await queue.send(JSON.stringify(message), { contentType: "text" });
    await until("the messages", () => curfew.logLines("index_saved").slice(saved).reduce((all, line) => all + line.messages, 0) >= 3);
    await untilTrue(curfew, ids);
  });

  test("a run in two processes is counted once, with what it did before it was loaded", async () => {
    const document = workflow({
      nodes: [{ id: "first", task_id: "call" }, { id: "rest", wait: { signal: "go" } }, { id: "last", task_id: "call" }],
      transitions: [{ from_node_id: "first", to_node_id: "rest" }, { from_node_id: "rest", to_node_id: "last" }],
      tasks: [{ id: "call", steps: [{ ref: "call", action: { kind: "http_request", implementation: { url: "${input.url}" }, execution: { retry_policy: { max_attempts: 4, initial_delay: "1ms" } } } }] }],
    });
    await curfew.store(document);
    const id = await curfew.start(document.id, { url: `${peer.url}/flaky/${freshId("k")}/2/503` });
    ids.push(id);
    await until("the run to wait", async () => (await curfew.run(id)).status === "waiting");
    await untilTrue(curfew, ids);
    await curfew.dispose();
    curfew = await startCurfew(options);
    await untilTrue(curfew, ids);
    await curfew.api("POST", `/v1/runs/${id}/signals/go`, {});
    assert.equal((await curfew.ended(id)).status, "completed");
    const { samples } = await untilTrue(curfew, ids);
    assert.equal(samples.get(`node_execution_duration_seconds_count{workflow="${document.id}",node="first"}`), 1);
  });

  test("an ended run that was loaded is published with its metrics while other runs publish theirs", async () => {
    const document = workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }] });
    const other = oneTask([set({ a: 1 })]);
    for (const stored of [document, other]) await curfew.store(stored);
    const id = await curfew.start(document.id);
    ids.push(id);
    await until("the run to wait", async () => (await curfew.run(id)).status === "waiting");
    await untilTrue(curfew, ids);
    await curfew.dispose();
    curfew = await startCurfew(options);
    // Each run publishes a quarter of a second after its end, with the ended runs of that moment: those before the signal come first.
    for (let n = 0; n < 10; n++) ids.push(await curfew.start(other.id));
    await curfew.api("POST", `/v1/runs/${id}/signals/go`, {});
    assert.equal((await curfew.ended(id)).status, "completed");
    const { samples } = await untilTrue(curfew, ids);
    assert.equal(samples.get(`node_execution_duration_seconds_count{workflow="${document.id}",node="rest"}`), 1);
    assert.deepEqual(curfew.logLines("metrics_unreadable"), []);
  });

  test("a lost message is repaired by the sweep", async () => {
    const document = workflow({ nodes: [{ id: "rest", wait: { signal: "never" } }], timeout: "500ms" });
    await curfew.store(document);
    const id = await curfew.start(document.id);
    ids.push(id);
    await until("the row", async () => (await curfew.sql("SELECT 1 FROM runs WHERE id = ? AND status = 'waiting'", [id])).length > 0);
    await curfew.ended(id);
    await untilTrue(curfew, ids);
    // As if the message of the end had never come, nor been counted.
    const [row] = await curfew.sql("SELECT samples FROM metrics WHERE workflow = '' AND node = ''");
    const { "ends/timed_out": ends, ...others } = JSON.parse(row.samples);
    await curfew.sql("UPDATE metrics SET samples = ? WHERE workflow = '' AND node = ''", [JSON.stringify({ ...others, "ends/timed_out": ends - 1 })]);
    const [own] = await curfew.sql("SELECT metrics FROM runs WHERE id = ?", [id]);
    const kept = JSON.parse(own.metrics).filter(([, name]: [string, string]) => name !== "ends/timed_out");
    await curfew.sql("UPDATE runs SET metrics = ?, status = 'waiting', ended_at = NULL, due_at = 1, updated_at = 1, revision = 0 WHERE id = ?", [JSON.stringify(kept), id]);
    await sweep(curfew);
    const { samples } = await untilTrue(curfew, ids);
    assert.ok(samples.get("workflow_timeout_enforcer_overdue_total")! >= 1);
    assert.ok(samples.get("workflow_timeout_enforcer_woken_total")! >= 1);
    assert.equal(samples.get("workflow_timeout_enforcer_cycle_duration_seconds_count"), 1);
    assert.ok(Math.abs(samples.get("workflow_timeout_enforcer_last_pass_timestamp_seconds")! - Date.now() / 1000) < 60);
  });

  test("parked runs and open breakers are shown", async () => {
    const document = workflow({ nodes: [{ id: "ask", gate: { prompt: "?" } }] });
    await curfew.store(document);
    const id = await curfew.start(document.id);
    ids.push(id);
    const parked = await until("the parked run", async () => {
      const { samples } = await scrape(curfew);
      return samples.get("workflow_executions_parked") === 1 && samples;
    });
    const opened = (await curfew.events(id, "gate_opened"))[0]!.at / 1000;
    assert.equal(parked.get("workflow_executions_parked_oldest_timestamp_seconds"), opened);
    await curfew.api("POST", `/v1/runs/${id}/cancel`, {});
    const key = freshId("dep");
    const call = oneTask([{ ref: "call", action: { kind: "http_request", implementation: { url: `${peer.url}/status/500` }, execution: { breaker: key, retry_policy: { max_attempts: 1 } } } }]);
    for (let n = 0; n < 3; n++) await ended(call, {}, "failed");
    const { samples } = await until("the breaker", async () => {
      const exposition = await scrape(curfew);
      return exposition.samples.get(`breaker_state{key="${key}"}`) === 2 && exposition.samples.get("workflow_executions_parked") === 0 && exposition;
    });
    assert.equal(samples.get("workflow_executions_parked_oldest_timestamp_seconds"), undefined);
    await untilTrue(curfew, ids);
  });

  test("every metric has help and a type; histograms rise to their count", async () => {
    const { samples, types, helps } = await scrape(curfew);
    assert.deepEqual([...types.keys()], [...helps.keys()]);
    for (const name of samples.keys()) {
      const metric = name.split("{")[0]!;
      assert.ok(types.has(metric) || types.get(metric.replace(/_(bucket|sum|count)$/, "")) === "histogram", name);
    }
    const buckets = [...samples].filter(([name]) => name.startsWith("workflow_timeout_enforcement_latency_seconds_bucket"));
    const counts = buckets.map(([, count]) => count);
    assert.deepEqual(counts, [...counts].sort((one, other) => one - other));
    assert.equal(counts.at(-1), samples.get("workflow_timeout_enforcement_latency_seconds_count"));
    assert.ok(!JSON.stringify([...samples.keys()]).includes(ids[0]!), "no run ids");
  });

  test("a scrape reads few rows", async () => {
    const response = await curfew.api("GET", "/metrics");
    assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
    const rows = Number(/rows_read=(\d+)/.exec(response.headers.get("x-curfew-bill") ?? "")?.[1]);
    assert.ok(rows > 0 && rows < 500, `${rows}`);
  });
});

test("a scrape is one statement, a batch of the index one more than it was, a pass of the sweep one more", async () => {
  const curfew = await startCurfew({ entry: "tests/workerd/workers/statement-counter.mjs" });
  try {
    const statements = async (): Promise<{ prepared: string[]; transactions: number[] }> => (await curfew.api("GET", "/statements")).json;
    const document = oneTask([set({ a: 1 })]);
    await curfew.store(document);
    await statements();
    await curfew.ended(await curfew.start(document.id));
    await until("the index", () => curfew.logLines("index_saved").length > 0);
    const { prepared, transactions } = await statements();
    // Metrics, tags, the run, tags.
    assert.ok(transactions.every((size) => size === 4), JSON.stringify(transactions));
    assert.equal(prepared.filter((sql) => sql.startsWith("WITH")).length, transactions.length, JSON.stringify(prepared));
    await scrape(curfew);
    const scraped = await statements();
    assert.deepEqual([scraped.prepared.length, scraped.transactions.length], [1, 0], JSON.stringify(scraped));
    await sweep(curfew);
    const swept = await until("the pass to be measured", async () => {
      const { samples } = await scrape(curfew);
      return samples.get("workflow_timeout_enforcer_cycle_duration_seconds_count") === 1;
    }).then(statements);
    assert.equal(swept.prepared.filter((sql) => sql.startsWith("INSERT INTO metrics")).length, 1, JSON.stringify(swept.prepared));
  } finally {
    await curfew.dispose();
  }
});

test("metrics need the role read, and a credential for all workflows", async () => {
  const scoped = "scoped-token-0123456789";
  const tokens = { ...JSON.parse(roleVars.CURFEW_TOKENS), [scoped]: { name: "scoped", roles: ["admin"], workflows: ["order-*"] } };
  const curfew = await startCurfew({ vars: { CURFEW_TOKENS: JSON.stringify(tokens) } });
  try {
    assert.equal((await curfew.api("GET", "/metrics")).status, 401);
    assert.equal((await curfew.api("GET", "/metrics", undefined, scoped)).status, 403);
    assert.equal((await curfew.api("POST", "/metrics", {}, ADMIN)).status, 405);
    const { samples } = await scrape(curfew, READ);
    assert.equal(samples.get('workflow_executions_total{status="completed"}'), 0);
    assert.equal(samples.get("workflow_executions_timeout_rate"), 0);
  } finally {
    await curfew.dispose();
  }
});
