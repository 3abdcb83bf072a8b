// Fan-out and fan-in with real executors: items of branches, quorums and failures of joins, and remaining branches.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertCompleted } from "./assertions.ts";
import { ask, fan, freshId, set, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer, type RecordedRequest } from "./peer.ts";
import { until } from "./poll.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

const ok = (n: number) => `${peer.url}/ok?n=${n}`;
const held = (key: string, n: number) => `${peer.url}/held/${key}?n=${n}`;

/** [status, reason] of the branches, by their index. */
async function branches(runId: string): Promise<(string | null)[][]> {
  const tokens = (await curfew.tokens(runId)).filter((token) => token.node_id === "work");
  tokens.sort((a, b) => (a.branch?.index ?? 0) - (b.branch?.index ?? 0));
  return tokens.map((token) => [token.status, token.reason]);
}

const reached = (paths: string[]) => until("the request at the peer", () => paths.every((path) => peer.seen(path).length > 0));

const closedRequest = (path: string): Promise<RecordedRequest> =>
  until(`the connection to ${path} to close`, () => {
    const [seen] = peer.seen(path);
    return seen?.closedAt !== undefined && seen;
  });

const waitingSiblings = (runId: string, count: number) =>
  until(`${count} waiting siblings`, async () => (await curfew.run(runId)).counts["waiting_for_siblings"] === count);

/** Branches that return their index, without a call. */
const branchesThatReturn = (values: Record<string, unknown>) => ({
  work: {
    task_id: "tell",
    input_mapping: { index: "${_branch.index}", total: "${_branch.total}", item: "${_branch.item}" },
  },
  workflow: { tasks: [{ id: "tell", steps: [set(values)] }] },
});

test("spawn_count creates siblings with an index and a total", async () => {
  const branch = branchesThatReturn({ index: "${input.index}", total: "${input.total}" });
  const run = await curfew.runToEnd(fan({ spawn: { spawn_count: 3 }, ...branch }));
  assertCompleted(run);
  assert.deepEqual(run.output, [0, 1, 2].map((index) => ({ index, total: 3 })));
  assert.deepEqual(run.counts, { completed: 5 });
  const tokens = await curfew.tokens(run.id);
  assert.deepEqual(tokens.map((token) => token.node_id), ["start", "work", "work", "work", "done"]);
  for (const [index, token] of tokens.slice(1, 4).entries()) {
    const { group, instance, total } = token.branch ?? {};
    assert.deepEqual([group, token.branch?.index, total], ["each", index, 3]);
    assert.equal(instance, tokens[1]?.branch?.instance);
  }
  assert.equal(tokens[0]?.branch, null);
  assert.equal(tokens[4]?.branch, null, "the continuation is in no branch");
});

test("foreach creates one branch per item, in order", async () => {
  const run = await curfew.runToEnd(fan({}), { urls: [2, 0, 1].map(ok) });
  assertCompleted(run);
  assert.deepEqual(run.output, ["2", "0", "1"]);
});

test("foreach over an empty list creates no branch; a value that is no list is a validation failure", async () => {
  const document = fan({ workflow: { output_mapping: "nothing" } });
  const none = await curfew.runToEnd(document, { urls: [] });
  assertCompleted(none);
  assert.deepEqual(none.counts, { completed: 1 });
  const wrong = await curfew.ended(await curfew.start(document.id, { urls: "http://one" }));
  assert.equal(wrong.status, "failed");
  assert.equal(wrong.error?.class, "validation");
  assert.match(wrong.error?.message ?? "", /is not a list/);
});

test("merge strategies", async () => {
  const cases: [merge: Record<string, unknown>, made: unknown, already: unknown, merged: unknown][] = [
    [{ strategy: "append" }, ["${input.index}"], ["kept"], ["kept", [0], [1]]],
    [{ strategy: "concat" }, ["${input.index}", "x"], ["kept"], ["kept", 0, "x", 1, "x"]],
    [{ strategy: "merge_object", source: "_branch.output" }, { last: "${input.index}" }, { kept: 1 }, { kept: 1, last: 1 }],
    [{ strategy: "keyed_by_branch" }, "${input.index}", { kept: 1 }, { kept: 1, "0": 0, "1": 1 }],
    [{ strategy: "append", source: "_branch.index" }, "unused", null, [0, 1]],
  ];
  for (const [merge, made, already, merged] of cases) {
    const { work, workflow: more } = branchesThatReturn({ made });
    const document = fan({
      spawn: { spawn_count: 2 },
      work: { ...work, output_mapping: { "_branch.output": "${result.made}" } },
      merge,
      workflow: more,
    });
    document.nodes[0] = { id: "start", output_mapping: { "state.results": already } };
    const run = await curfew.runToEnd(document);
    assertCompleted(run);
    assert.deepEqual(run.output, merged, JSON.stringify(merge));
  }
});

test("last_wins takes the branch that finished last, not the last of the list", async () => {
  const key = freshId("k");
  const document = fan({ merge: { strategy: "last_wins" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: [held(key, 0), ok(1), ok(2)] });
  await waitingSiblings(id, 2);
  peer.release(key);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.equal(run.output, "0");
});

test("a merge that fails fails the run with its place", async () => {
  const run = await curfew.runToEnd(fan({ merge: { strategy: "merge_object" } }), { urls: [ok(1)] });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.class, "validation");
  assert.match(run.error?.message ?? "", /merge of transition joined: expected an object from branch 0/);
});

test("transitions of one sibling group are one fan-out", async () => {
  const to = (id: string) => ({ id: `to-${id}`, from_node_id: "start", to_node_id: id, sibling_group: "both" });
  const join = { strategy: "all", sibling_group: "both", merge: { target: "state.results", source: "_branch.output.body.query.n" } };
  const back = (id: string) => ({ id: `from-${id}`, from_node_id: id, to_node_id: "done", synchronization: join });
  const node = (id: string) => ({ id, action_id: "ask", input_mapping: { url: `\${input.${id}}` } });
  const run = await curfew.runToEnd(
    workflow({
      nodes: [{ id: "start" }, node("a"), node("b"), { id: "done" }],
      transitions: [to("a"), to("b"), back("a"), back("b")],
      actions: [ask],
      output_mapping: "${state.results}",
    }),
    { a: ok(1), b: ok(2) },
  );
  assertCompleted(run);
  assert.deepEqual(run.output, ["1", "2"]);
  const tokens = (await curfew.tokens(run.id)).filter((token) => token.branch !== null);
  assert.deepEqual(tokens.map(({ branch }) => [branch?.group, branch?.index, branch?.total]), [["both", 0, 2], ["both", 1, 2]]);
});

test("every firing in a loop is its own fan-out", async () => {
  const branch = branchesThatReturn({ index: "${input.index}" });
  const document = fan({ spawn: { spawn_count: 2 }, ...branch, merge: { source: "_branch.output.index" } });
  (document["transitions"] as object[]).push({
    id: "again",
    from_node_id: "done",
    to_node_id: "start",
    loop_config: { max_iterations: 1 },
  });
  const run = await curfew.runToEnd(Object.assign(document, { on_no_match: "end" }));
  assertCompleted(run);
  assert.deepEqual(run.output, [0, 1, 0, 1]);
  const instances = (await curfew.tokens(run.id)).flatMap((token) => token.branch?.instance ?? []);
  assert.equal(new Set(instances).size, 2);
  assert.equal(instances.length, 4);
});

test("an inner fan-in merges into its outer branch", async () => {
  const run = await curfew.runToEnd(
    workflow({
      nodes: [
        { id: "start" },
        { id: "split" },
        { id: "work", action_id: "ask", input_mapping: { url: "${url}" }, output_mapping: { "_branch.output": "${result.body.query.n}" } },
        { id: "gathered" },
        { id: "done" },
      ],
      transitions: [
        { id: "outer", from_node_id: "start", to_node_id: "split", foreach: { collection: "input.groups", item_var: "group" } },
        { id: "inner", from_node_id: "split", to_node_id: "work", foreach: { collection: "group", item_var: "url" } },
        {
          from_node_id: "work",
          to_node_id: "gathered",
          synchronization: { strategy: "all", sibling_group: "inner", merge: { target: "_branch.output.parts" } },
        },
        {
          from_node_id: "gathered",
          to_node_id: "done",
          synchronization: {
            strategy: "all",
            sibling_group: "outer",
            merge: { source: "_branch.output.parts", target: "state.results" },
          },
        },
      ],
      actions: [ask],
      output_mapping: "${state.results}",
    }),
    { groups: [[ok(1), ok(2)], [ok(3)], [ok(4), ok(5), ok(6)]] },
  );
  assertCompleted(run);
  assert.deepEqual(run.output, [["1", "2"], ["3"], ["4", "5", "6"]]);
  const gathered = (await curfew.tokens(run.id)).filter((token) => token.node_id === "gathered");
  assert.deepEqual(gathered.map((token) => token.branch?.group), ["outer", "outer", "outer"]);
});

test("m_of_n, cancel: the connections of the remaining branches are closed", async () => {
  const [key, a, b] = [freshId("k"), `/hang/${freshId("h")}`, `/hang/${freshId("h")}`];
  const document = fan({ join: { strategy: { m_of_n: 2 }, on_early_complete: "cancel" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: [peer.url + a, held(key, 1), peer.url + b, held(key, 3)] });
  await reached([a, b, `/held/${key}`]);
  peer.release(key);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["1", "3"]);
  for (const path of [a, b]) assert.equal((await closedRequest(path)).aborted, true);
  assert.deepEqual(await branches(id), [
    ["cancelled", "fan_in_completed"],
    ["completed", null],
    ["cancelled", "fan_in_completed"],
    ["completed", null],
  ]);
});

test("m_of_n, abandon: the remaining branches run on, the run does not wait, their results are discarded", async () => {
  const [early, late] = [freshId("k"), freshId("k")];
  const document = fan({ join: { strategy: { m_of_n: 1 } } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: [held(late, 0), held(early, 1)] });
  await reached([`/held/${early}`, `/held/${late}`]);
  peer.release(early);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["1"]);
  const [loser] = peer.seen(`/held/${late}`);
  assert.equal(loser?.closedAt, undefined, "the run has ended while the remaining branch is still working");
  peer.release(late);
  assert.equal((await closedRequest(`/held/${late}`)).aborted, false, "it had its whole answer");
  await until("the log of the late result", () =>
    curfew.logs.some((line) => line.includes("late_result_discarded") && line.includes('"t2"')),
  );
  assert.deepEqual((await curfew.run(id)).output, ["1"]);
  assert.deepEqual(await branches(id), [["cancelled", "abandoned"], ["completed", null]]);
});

test("m_of_n, allow_late_merge: the run continues and merges late results", async () => {
  const [early, late] = [freshId("k"), freshId("k")];
  const document = fan({ join: { strategy: { m_of_n: 1 }, on_early_complete: "allow_late_merge" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: [held(late, 0), held(early, 1)] });
  await reached([`/held/${early}`, `/held/${late}`]);
  peer.release(early);
  await until("the continuation", async () => (await curfew.tokens(id)).some((token) => token.node_id === "done"));
  assert.equal((await curfew.run(id)).status, "running");
  peer.release(late);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["1", "0"]);
  assert.equal((await curfew.tokens(id)).filter((token) => token.node_id === "done").length, 1);
});

test("any: the first branch to complete is enough, a failure before it is not", async () => {
  const hanging = `/hang/${freshId("h")}`;
  const document = fan({ join: { strategy: "any", on_early_complete: "cancel" } });
  const run = await curfew.runToEnd(document, { urls: [`${peer.url}/status/404`, ok(1), peer.url + hanging] });
  assertCompleted(run);
  assert.deepEqual(run.output, ["1"]);
});

test("sync timeout, proceed_with_available: arrived results are merged and the run continues", async () => {
  const document = fan({ join: { timeout_ms: 700, on_timeout: "proceed_with_available" } });
  const run = await curfew.runToEnd(document, { urls: [ok(0), `${peer.url}/hang/${freshId("h")}`, ok(2)] });
  assertCompleted(run);
  assert.deepEqual(run.output, ["0", "2"]);
  assert.deepEqual(await branches(run.id), [
    ["completed", null],
    ["timed_out", "sync_timeout"],
    ["completed", null],
  ]);
  const { items } = (await curfew.api("GET", `/v1/runs/${run.id}/timeouts`)).json;
  assert.deepEqual(items[0].last_known_state.progress.nodes, { work: 1 });
  assert.deepEqual(
    items[0].last_known_state.progress.at_work.map((late: { node_id: string; branch: number }) => [late.node_id, late.branch]),
    [["work", 1]],
  );
  const [event] = await curfew.events(run.id, "sync_timed_out");
  assert.equal(event?.["policy_applied"], "proceed_with_available");
});

test("sync timeout, proceed_with_available with cancel: calls of late branches are aborted", async () => {
  const hanging = `/hang/${freshId("h")}`;
  const document = fan({ join: { timeout_ms: 700, on_timeout: "proceed_with_available", on_early_complete: "cancel" } });
  const run = await curfew.runToEnd(document, { urls: [ok(0), peer.url + hanging] });
  assertCompleted(run);
  assert.deepEqual(await branches(run.id), [["completed", null], ["timed_out", "sync_timeout"]]);
  assert.equal((await closedRequest(hanging)).aborted, true);
});

test("sync timeout, fail: the exact message, and running branches are aborted", async () => {
  const hanging = `/hang/${freshId("h")}`;
  const document = fan({ join: { timeout_ms: 700 } });
  const run = await curfew.runToEnd(document, { urls: [ok(0), peer.url + hanging] });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "Synchronization timeout exceeded");
  assert.equal(run.error?.class, "timeout");
  assert.deepEqual((await branches(run.id)).map(([status]) => status), ["timed_out", "timed_out"]);
  assert.equal((await closedRequest(hanging)).aborted, true);
});

test("sync timeout without a completed branch: the exact message", async () => {
  const document = fan({ join: { strategy: "any", timeout_ms: 700, on_timeout: "proceed_with_available" } });
  const transitions = document["transitions"] as Record<string, unknown>[];
  // A failed branch arrives by its failure route: it starts the deadline but does not count.
  transitions.push({ ...transitions[1], id: "joined-failed", on: "failure" });
  const run = await curfew.runToEnd(document, { urls: [`${peer.url}/status/404`, `${peer.url}/hang/${freshId("h")}`] });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "No siblings completed before timeout");
});

test("the deadline of a join starts with the first arrival", async () => {
  // Each branch takes longer than the join's timeout: if it started with the fan-out, none would be in time.
  const document = fan({ join: { timeout_ms: 1_000 } });
  const run = await curfew.runToEnd(document, { urls: [0, 1].map((n) => `${peer.url}/slow/1500?n=${n}`) });
  assertCompleted(run);
  assert.deepEqual(run.output, ["0", "1"]);
});

test("a live join shows its deadline", async () => {
  const document = fan({ join: { timeout: "20s" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: [ok(0), `${peer.url}/hang/${freshId("h")}`] });
  await waitingSiblings(id, 1);
  const [deadline] = (await curfew.run(id)).deadlines.filter(({ kind }) => kind === "synchronization");
  assert.equal(deadline?.node_id, "done");
  const [, first] = await curfew.tokens(id);
  assert.ok(Math.abs((deadline?.due_at ?? 0) - (first?.ended_at ?? 0) - 20_000) < 1_000, JSON.stringify(deadline));
  await curfew.api("POST", `/v1/runs/${id}/cancel`);
});

test("all: one failed branch fails the join at once, with its reason", async () => {
  const hanging = `/hang/${freshId("h")}`;
  const key = freshId("k");
  peer.route(`/later/${key}`, () => ({ status: 404, body: {} }));
  const document = fan({});
  const run = await curfew.runToEnd(document, { urls: [ok(0), `${peer.url}/later/${key}`, peer.url + hanging] });
  assert.equal(run.status, "failed");
  assert.match(run.error?.message ?? "", /fan-in at node done cannot be met: .* of 3 branches completed.*404/);
  assert.ok((run.duration_ms ?? 0) < 10_000, "it did not wait for a deadline");
});

test("all, proceed_with_available: a failed branch is omitted", async () => {
  const document = fan({ join: { on_branch_failure: "proceed_with_available" } });
  const run = await curfew.runToEnd(document, { urls: [ok(0), `${peer.url}/status/404`, ok(2)] });
  assertCompleted(run);
  assert.deepEqual(run.output, ["0", "2"]);
  assert.deepEqual((await branches(run.id)).map(([status]) => status), ["completed", "failed", "completed"]);
});

test("a quorum that cannot be reached any more fails at once", async () => {
  const document = fan({ join: { strategy: { m_of_n: 2 } } });
  const urls = [`${peer.url}/status/404`, `${peer.url}/status/404`, `${peer.url}/hang/${freshId("h")}`];
  const run = await curfew.runToEnd(document, { urls });
  assert.equal(run.status, "failed");
  assert.match(run.error?.message ?? "", /cannot be met: 0 of 3 branches completed, 1 may still/);
});

test("cancel closes the connection of a remaining branch, while an unrelated token works on", async () => {
  const [winner, other, hanging] = [freshId("k"), freshId("k"), `/hang/${freshId("h")}`];
  const document = fan({ join: { strategy: "any", on_early_complete: "cancel" } });
  // Created in the same commit as the branches, but outside of them.
  document.nodes.push({ id: "other", action_id: "ask", input_mapping: { url: "${input.other}" } });
  (document["transitions"] as object[]).push({ from_node_id: "start", to_node_id: "other" });
  await curfew.store(document);
  const urls = [peer.url + hanging, held(winner, 1)];
  const id = await curfew.start(document.id, { urls, other: held(other, 2) });
  await reached([hanging, `/held/${winner}`, `/held/${other}`]);
  peer.release(winner);
  assert.equal((await closedRequest(hanging)).aborted, true);
  assert.equal(peer.seen(`/held/${other}`)[0]?.closedAt, undefined, "its own work was not touched");
  peer.release(other);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, ["1"]);
});

test("200 branches, ten of them failing and four that never answer", async () => {
  const hanging = `/hang/${freshId("h")}`;
  const key = freshId("k");
  const isFailing = (n: number) => n % 20 === 7;
  const isHanging = (n: number) => n % 50 === 3;
  const url = (n: number) => {
    if (isHanging(n)) return `${peer.url}${hanging}/${n}`;
    if (n === 199) return held(key, n);
    return isFailing(n) ? `${peer.url}/status/404?n=${n}` : ok(n);
  };
  const numbers = Array.from({ length: 200 }, (_, n) => n);
  const document = fan({ join: { strategy: { m_of_n: 186 }, on_early_complete: "cancel" } });
  await curfew.store(document);
  const id = await curfew.start(document.id, { urls: numbers.map(url) });
  // The last branch that counts responds after all others.
  await until("the others", async () => {
    const { counts } = await curfew.run(id);
    return counts["waiting_for_siblings"] === 185 && counts["failed"] === 10 && peer.seen(hanging).length === 4;
  });
  peer.release(key);
  const run = await curfew.ended(id);
  assertCompleted(run);
  assert.deepEqual(run.output, numbers.filter((n) => !isHanging(n) && !isFailing(n)).map(String));
  assert.deepEqual(run.counts, { completed: 188, failed: 10, cancelled: 4 });
  const ends = await branches(run.id);
  for (const n of numbers.filter(isHanging)) assert.deepEqual(ends[n], ["cancelled", "fan_in_completed"]);
  await until("the connections of all remaining branches to close", () => peer.seen(hanging).every((seen) => seen.aborted === true));
});

test("the maximum width: 1 000 branches, one continuation", async () => {
  const branch = branchesThatReturn({ index: "${input.index}" });
  const document = fan({ spawn: { spawn_count: 1_000 }, ...branch, merge: { source: "_branch.output.index" } });
  const run = await curfew.runToEnd(document);
  assertCompleted(run);
  assert.deepEqual(run.output, Array.from({ length: 1_000 }, (_, n) => n));
  assert.deepEqual(run.counts, { completed: 1_002 });
});

test("a wider fan-out is refused when the list is known", async () => {
  const run = await curfew.runToEnd(fan({}), { urls: Array.from({ length: 1_001 }, () => "http://x") });
  assert.equal(run.status, "failed");
  assert.match(run.error?.message ?? "", /1001 items; the limit is 1000/);
});
