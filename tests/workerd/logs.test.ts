// Log lines: what a timeout, a retry and a limit say, and that the check of every line can fail.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fan, freshId, oneRequest, oneTask, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { problemsOf } from "./log-check.ts";
import { startPeer, type Peer } from "./peer.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew({ vars: { CURFEW_RETRY_DELAY_MS: "10" } }), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const linesOf = (runId: string, event: string): any[] => curfew.logLines(event).filter((line) => line.run_id === runId);

test("the check of log lines finds what must not be there", () => {
  const line = (more: object): string => JSON.stringify({ level: "info", event: "sweep", run_id: "order-number-1", ...more });
  assert.deepEqual(problemsOf([line({ found: 1 })], ["order-number-1", "something else"], ["a-long-secret"]), []);
  for (const [lines, texts, secrets, problem] of [
    [["plain words"], [], [], /^not a JSON object/],
    [['"a text"'], [], [], /^not a JSON object/],
    [[JSON.stringify({ level: "info", event: "unheard_of" })], [], [], /^not in the table/],
    [[line({ message: "got the input value of a run" })], ["input value"], [], /^data "input value"/],
    [[line({ nested: { output: ["the result"] } })], ["the result"], [], /^data/],
    [[line({ run_id: "a-long-secret" })], [], ["a-long-secret"], /^a secret/],
  ] as const) {
    const problems = problemsOf([...lines], texts, secrets);
    assert.equal(problems.length, 1, JSON.stringify(problems));
    assert.match(problems[0]!, problem);
  }
});

test("a limit says what set it, a timeout how late it was and what was done", async () => {
  const hanging = oneRequest(`${peer.url}/hang`, { node: { timeout: "200ms", on_timeout: "retry", max_retries: 1 } });
  const run = await curfew.runToEnd(hanging);
  const limits = linesOf(run.id, "timeout_set").map(({ token_id, node_id, epoch, timeout_ms, source }) => [token_id, node_id, epoch, timeout_ms, source]);
  assert.deepEqual(limits, [[undefined, undefined, undefined, 30_000, "workflow"], ["t1", "work", 1, 200, "node"], ["t1", "work", 2, 200, "node"]]);
  const timeouts = linesOf(run.id, "token_timed_out");
  assert.deepEqual(timeouts.map(({ token_id, node_id, policy_applied, timeout_type }) => [token_id, node_id, policy_applied, timeout_type]), [["t1", "work", "retry", "execution"], ["t1", "work", "fail", "execution"]]);
  for (const { level, due_at, lateness_ms } of timeouts) assert.ok(level === "warn" && due_at > 0 && lateness_ms >= 0, JSON.stringify(timeouts));
  assert.equal(linesOf(run.id, "token_retried").length, 1);

  const cases: [object & { id: string }, unknown, string, string][] = [
    [oneRequest(`${peer.url}/hang`, { workflow: { timeout: "300ms" } }), {}, "run_timed_out", "cancel_all"],
    [fan({ join: { strategy: "all", timeout: "300ms", on_timeout: "proceed_with_available" } }), { urls: [`${peer.url}/ok?n=1`, `${peer.url}/hang?n=2`] }, "sync_timed_out", "proceed_with_available"],
    [workflow({ nodes: [{ id: "ask", gate: { prompt: "?", timeout: "200ms", on_timeout: "reject" } }] }), {}, "gate_timed_out", "proceed_with_available"],
  ];
  for (const [document, input, event, policy] of cases) {
    const { id } = await curfew.runToEnd(document, input);
    const [line] = linesOf(id, event);
    assert.ok(line?.due_at > 0 && line.lateness_ms >= 0, `${event}: ${JSON.stringify(line)}`);
    assert.equal(line.policy_applied, policy, event);
  }
});

test("each retry and rate limit is a line", async () => {
  const retrying = (status: number) =>
    oneTask([{ ref: "call", action: { kind: "http_request", implementation: { url: `${peer.url}/flaky/${freshId("k")}/1/${status}` }, execution: { retry_policy: { max_attempts: 3, initial_delay: "5ms" } } } }]);
  for (const [status, event, name] of [[503, "action_retried", "server_error"], [429, "rate_limited", "rate_limited"]] as const) {
    const { id } = await curfew.runToEnd(retrying(status));
    const [line, ...others] = linesOf(id, event);
    assert.deepEqual([line?.class, line?.code, line?.token_id, line?.step_ref, others.length], [name, `http_${status}`, "t1", "call", 0]);
    assert.ok(line.delay_ms >= 0);
  }
});

test("a cancellation is logged without the caller's words", async () => {
  const document = workflow({ nodes: [{ id: "rest", wait: { signal: "go" } }] });
  await curfew.store(document);
  const id = await curfew.start(document.id);
  await curfew.api("POST", `/v1/runs/${id}/cancel`, { reason: "the customer Mrs. Miller called" });
  await curfew.ended(id);
  const [line] = linesOf(id, "run_cancelled");
  assert.ok(line && !("reason" in line), JSON.stringify(line));
});
