// Infrastructure retries in the executor: failing peers, real delays, and their reports.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { check, freshId, oneTask, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const requestStep = (execution?: object) => ({
  ref: "ask",
  action: {
    kind: "http_request",
    implementation: { url: "${input.url}", method: "POST", body: { n: 1 } },
    ...(execution ? { execution } : {}),
  },
});
const fastRetries = { retry_policy: { initial_delay: "20ms", jitter: false } };

const gaps = (path: string) => peer.seen(path).map(({ at }, index, all) => at - (all[index - 1]?.at ?? at)).slice(1);

describe("retries", { concurrency: 8 }, () => {
  test("by default a failed call is retried after a second or more", async () => {
    const path = `/flaky/${freshId("k")}/1/503`;
    const run = await curfew.runToEnd(oneTask([requestStep()]), { url: peer.url + path });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    const [token] = await curfew.tokens(run.id);
    const [step] = token?.steps ?? [];
    assert.deepEqual([step?.attempts, step?.retries?.length], [2, 1]);
    const [retry] = step?.retries ?? [];
    assert.deepEqual([retry?.class, retry?.code], ["server_error", "http_503"]);
    assert.ok((retry?.delay_ms ?? 0) >= 1_000 && (retry?.delay_ms ?? 0) <= 1_500, `${retry?.delay_ms} ms`);
    assert.ok((gaps(path)[0] ?? 0) >= (retry?.delay_ms ?? NaN) - 5, `${gaps(path)}`);
    assert.equal(token?.epoch, 1, "inside one attempt of the token");
  });

  test("all calls of a step have the same Idempotency-Key", async () => {
    const path = `/flaky/${freshId("k")}/3/500`;
    const run = await curfew.runToEnd(oneTask([requestStep(fastRetries)]), { url: peer.url + path });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    const seen = peer.seen(path);
    assert.deepEqual([seen.length, new Set(seen.map(({ headers }) => headers["idempotency-key"])).size], [4, 1]);
    const [token] = await curfew.tokens(run.id);
    assert.deepEqual(token?.steps[0]?.retries?.map(({ delay_ms }) => delay_ms), [20, 40, 80]);
  });

  test("a network failure is retried until the attempts are used up", async () => {
    const run = await curfew.runToEnd(oneTask([requestStep(fastRetries)]), { url: "http://127.0.0.1:1/" });
    assert.deepEqual([run.status, run.error?.class], ["failed", "network"]);
    const [token] = await curfew.tokens(run.id);
    assert.equal(token?.steps[0]?.attempts, 4);
    for (const path of ["/half", "/lies/100"]) {
      const cut = await curfew.runToEnd(oneTask([requestStep({ retry_policy: { ...fastRetries.retry_policy, max_attempts: 2 } })]), {
        url: peer.url + path,
      });
      assert.deepEqual([cut.status, cut.error?.class], ["failed", "network"], path);
      assert.equal(peer.seen(path).length, 2, path);
    }
  });

  test("a rate limit is awaited as long as the peer asks, and logged", async () => {
    const path = `/limited/${freshId("k")}`;
    const date = () => new Date(Date.now() + 2_000).toUTCString();
    peer.route(path, (_seen, asked) =>
      asked > 2 ? { body: { asked } } : { status: 429, headers: { "retry-after": asked === 1 ? "1" : date() }, body: {} },
    );
    const run = await curfew.runToEnd(oneTask([requestStep()]), { url: peer.url + path });
    assert.deepEqual(run.output?.body, { asked: 3 }, JSON.stringify(run.error));
    const [first, second] = gaps(path);
    assert.ok((first ?? 0) >= 995, `${first} ms`);
    assert.ok((second ?? 0) >= 950 && (second ?? 0) < 3_000, `${second} ms, a date has whole seconds`);
    const lines = curfew.logs.filter((line) => line.includes("rate_limited") && line.includes(run.id)).map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ event, token_id, step_ref, class: ofClass, code }) => [event, token_id, step_ref, ofClass, code]),
      Array(2).fill(["rate_limited", "t1", "ask", "rate_limited", "http_429"]),
    );
  });

  test("failures that are not retryable are not retried", async () => {
    for (const status of [400, 401, 404, 409, 422]) {
      const path = `/status/${status}/${freshId("k")}`;
      const run = await curfew.runToEnd(oneTask([requestStep()]), { url: peer.url + path });
      assert.equal(run.status, "failed");
      assert.equal(peer.seen(path).length, 1, String(status));
    }
  });

  test("a timeout bounds one call, not the retries around it", async () => {
    const path = `/flaky/${freshId("k")}/2/503`;
    const retry_policy = { initial_delay: "100ms", jitter: false };
    const run = await curfew.runToEnd(oneTask([requestStep({ timeout: "700ms", retry_policy })]), { url: peer.url + path });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.equal(peer.seen(path).length, 3);
    const [token] = await curfew.tokens(run.id);
    assert.deepEqual([token?.epoch, token?.steps[0]?.attempts], [1, 3]);
    assert.equal(token?.timeout_ms, 6 * 700 + 5 * 300_000 + 1_000);
    assert.equal(token?.timeout_reason, "6 calls of 700ms, and waits of up to 25m0s");
    // A call that hangs is still cut after 700 ms.
    const hanging = `/hang/${freshId("k")}`;
    const hung = await curfew.runToEnd(oneTask([requestStep({ timeout: "700ms", retry_policy })]), { url: peer.url + hanging });
    assert.deepEqual([hung.status, hung.error?.code], ["failed", "execution_timeout"]);
    assert.match(hung.error?.message ?? "", /^step .* timed out: context deadline exceeded$/);
    assert.ok((hung.duration_ms ?? NaN) >= 690 && (hung.duration_ms ?? NaN) < 5_000, `${hung.duration_ms} ms`);
    const [record] = await curfew.timeouts(hung.id);
    assert.equal(record?.timeout_event.timeout_ms, 700);
  });

  test("a total_timeout lets every call begin that comes before it", async () => {
    const path = `/status/503/${freshId("k")}`;
    const retry_policy = { total_timeout: "1500ms", initial_delay: "300ms", jitter: false, max_attempts: 9 };
    const run = await curfew.runToEnd(oneTask([requestStep({ timeout: "1s", retry_policy })]), { url: peer.url + path });
    assert.deepEqual([run.status, run.error?.code], ["failed", "http_503"]);
    // After 0, 300 and 900 ms; the next would begin after 2.1 s.
    assert.equal(peer.seen(path).length, 3);
    assert.match(run.error?.message ?? "", /would begin in 1\.2s, after its "total_timeout"; write a longer one in the action's "retry_policy"$/);
    assert.ok((run.duration_ms ?? NaN) < 1_450, `${run.duration_ms} ms: it does not wait for a deadline it knows of`);
  });

  test("a Retry-After that is longer than what is left ends the step at once", async () => {
    const path = `/limited/${freshId("k")}`;
    peer.route(path, () => ({ status: 429, headers: { "retry-after": "30" }, body: {} }));
    const run = await curfew.runToEnd(oneTask([requestStep({ timeout: "1s" })], { node: { timeout: "5s" } }), { url: peer.url + path });
    assert.deepEqual([run.status, run.error?.code], ["failed", "http_429"]);
    assert.match(run.error?.message ?? "", /would begin in 30s, after the attempt's deadline; write a longer "timeout" on the node or the task$/);
    assert.ok((run.duration_ms ?? NaN) < 4_000, `${run.duration_ms} ms`);
  });

  test("a retry that would begin too late is not made, and the error says so", async () => {
    const path = `/status/500/${freshId("k")}`;
    const run = await curfew.runToEnd(oneTask([requestStep()], { node: { timeout: "900ms" } }), { url: peer.url + path });
    assert.deepEqual([run.status, run.error?.class, run.error?.code], ["failed", "server_error", "http_500"]);
    assert.match(run.error?.message ?? "", /not tried again: the next call would begin in .*, after the attempt's deadline; write a longer "timeout"/);
    assert.equal(peer.seen(path).length, 1);
    assert.ok((run.duration_ms ?? NaN) < 900, "it does not wait for a deadline it knows of");
  });

  test("a timeout is retried inside the step if the execution says so", async () => {
    const path = `/hang-first/${freshId("k")}/2`;
    const execution = { timeout: "300ms", on_timeout: "retry", retry_policy: { max_attempts: 4, backoff: "none" } };
    const run = await curfew.runToEnd(oneTask([requestStep(execution)]), { url: peer.url + path });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    const [token] = await curfew.tokens(run.id);
    assert.deepEqual([token?.epoch, token?.steps[0]?.attempts], [1, 3]);
    const [first] = peer.seen(path);
    assert.equal(first?.aborted, true, "an aborted call is closed");
  });

  test("total_timeout limits all calls of a step", async () => {
    const path = `/hang/${freshId("k")}`;
    const execution = { timeout: "400ms", on_timeout: "retry", retry_policy: { max_attempts: 9, backoff: "none", total_timeout: "1s" } };
    const run = await curfew.runToEnd(oneTask([requestStep(execution)]), { url: peer.url + path });
    assert.deepEqual([run.status, run.error?.class], ["failed", "timeout"]);
    assert.equal(peer.seen(path).length, 3, "the last one is cut to what is left");
    const [token] = await curfew.tokens(run.id);
    assert.deepEqual([token?.timeout_ms, token?.retry_count], [1_000, 0]);
  });

  test("calls to a bound Worker are retried, too", async () => {
    const call = (path: string, policy: object) => ({
      kind: "service_call",
      implementation: { binding: "ECHO", path },
      execution: { retry_policy: { initial_delay_ms: 10, ...policy } },
    });
    for (const [status, errorClass, attempts] of [[503, "server_error", 4], [529, "provider_transient", 4], [401, "auth", 1]] as const) {
      const run = await curfew.runToEnd(oneTask([{ action: call(`/status/${status}`, {}) }]));
      assert.equal(run.error?.class, errorClass, JSON.stringify(run.error));
      const [token] = await curfew.tokens(run.id);
      assert.equal(token?.steps[0]?.attempts, attempts, String(status));
    }
  });

  test("a run that ends during a retry delay makes no further call", async () => {
    const cancelled = `/status/500/${freshId("k")}`;
    const document = oneTask([requestStep()]);
    await curfew.store(document);
    const id = await curfew.start(document.id, { url: peer.url + cancelled });
    await until("the first call", () => peer.seen(cancelled).length === 1);
    assert.equal((await curfew.api("POST", `/v1/runs/${id}/cancel`, {})).status, 200);
    // Longer than the retry delay of a run that is not cancelled.
    const twice = `/flaky/${freshId("k")}/2/500`;
    const other = await curfew.runToEnd(oneTask([requestStep()]), { url: peer.url + twice });
    assert.deepEqual([other.status, peer.seen(twice).length], ["completed", 3]);
    assert.deepEqual([peer.seen(cancelled).length, (await curfew.run(id)).status], [1, "cancelled"]);
  });

  test("the retries of one branch do not delay another", async () => {
    const slow = `/flaky/${freshId("k")}/1/500`;
    const document = workflow({
      nodes: [{ id: "start" }, { id: "a", action_id: "ask", input_mapping: { url: "${input.a}" } }, { id: "b", task_id: "set" }],
      transitions: [{ from_node_id: "start", to_node_id: "a" }, { from_node_id: "start", to_node_id: "b" }],
      actions: [{ id: "ask", ...requestStep().action }],
      tasks: [{ id: "set", steps: [set({ done: true })] }],
    });
    const run = await curfew.runToEnd(document, { a: peer.url + slow });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    const [a, b] = ["a", "b"].map((id) => async () => (await curfew.tokens(run.id)).find(({ node_id }) => node_id === id));
    const [ofA, ofB] = [await a?.(), await b?.()];
    assert.ok((ofA?.ended_at ?? 0) - (ofB?.ended_at ?? NaN) >= 900);
  });
});

test("with a peer that honours the key each business retry gets a new result, and each repeated call the same", async () => {
  const path = `/judged/${freshId("j")}`;
  /** Results by key. */
  const given = new Map<string, { good: boolean }>();
  peer.route(path, ({ headers }, asked) => {
    const key = String(headers["idempotency-key"]);
    // The first call of each round gets no response.
    if (asked % 2 === 1) return { status: 503, body: {} };
    const response = given.get(key) ?? { good: given.size > 0 };
    given.set(key, response);
    return { body: response };
  });
  const steps = [
    { ref: "ask", action: { kind: "http_request", implementation: { url: peer.url + path }, execution: fastRetries } },
    { ref: "judge", ...check("state.ask.body.good", "not good enough"), on_failure: "retry" },
  ];
  const run = await curfew.runToEnd(oneTask(steps, { task: { retry: { max_attempts: 3 } } }));
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  const keys = peer.seen(path).map(({ headers }) => headers["idempotency-key"]);
  assert.deepEqual(keys, [`${run.id}:t1:ask`, `${run.id}:t1:ask`, `${run.id}:t1:ask:2`, `${run.id}:t1:ask:2`]);
});
