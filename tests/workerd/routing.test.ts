// Routing: conditions, tiers, failure and timeout routes, loops, pass-through nodes, limits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { check, markAction, markNode, request, workflow } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

let curfew: Curfew;
let peer: Peer;
before(async () => {
  [curfew, peer] = await Promise.all([startCurfew(), startPeer()]);
});
after(() => Promise.all([curfew.dispose(), peer.close()]));

/** A workflow of marking nodes: its result is the list of visited nodes. */
function graph(nodes: string[], transitions: Record<string, unknown>[], more: Record<string, unknown> = {}) {
  return workflow({ nodes: nodes.map((id) => markNode(id)), actions: nodes.map(markAction), transitions, ...more });
}
const edge = (from: string, target: string, more: Record<string, unknown> = {}) => ({
  from_node_id: from,
  to_node_id: target,
  ...more,
});

async function visited(runId: string): Promise<string[]> {
  return (await curfew.tokens(runId)).map((token) => token.node_id);
}

test("a condition selects the route", async () => {
  const document = graph(
    ["start", "large", "small"],
    [
      edge("start", "large", { condition: "input.amount >= 100" }),
      edge("start", "small", { condition: "input.amount < 100" }),
    ],
  );
  await curfew.store(document);
  for (const [amount, wanted] of [[100, "large"], [99.5, "small"], [7, "small"]] as const) {
    const run = await curfew.ended(await curfew.start(document.id, { amount }));
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.deepEqual(await visited(run.id), ["start", wanted]);
  }
});

test("the first tier with a match fires all its matches, later tiers none", async () => {
  const run = await curfew.runToEnd(
    graph(
      ["start", "never", "left", "right", "otherwise"],
      [
        edge("start", "otherwise", { priority: 9 }),
        edge("start", "right", { priority: 2 }),
        edge("start", "never", { priority: -1, condition: "false" }),
        edge("start", "left", { priority: 2, condition: "state.start.visited == 'start'" }),
      ],
    ),
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual((await visited(run.id)).sort(), ["left", "right", "start"]);
  assert.deepEqual(run.counts, { completed: 3 });
});

test("a token whose transitions all do not match fails the run and names the conditions", async () => {
  const run = await curfew.runToEnd(graph(["start", "next"], [edge("start", "next", { condition: "input.amount > 3" })]), { amount: 2 });
  assert.equal(run.status, "failed");
  assert.equal(run.error?.code, "no_transition");
  assert.equal(run.error?.class, "validation");
  assert.equal(run.error?.node_id, "start");
  assert.match(run.error?.message ?? "", /input\.amount > 3/);
  assert.deepEqual(await visited(run.id), ["start"]);
});

test("with on_no_match: end a token without a matching transition ends its path", async () => {
  const run = await curfew.runToEnd(graph(["start", "next"], [edge("start", "next", { condition: "false" })], { on_no_match: "end" }));
  assert.equal(run.status, "completed");
  assert.deepEqual(await visited(run.id), ["start"]);
});

test("the run starts at initial_node_id", async () => {
  const run = await curfew.runToEnd(graph(["a", "b"], [edge("b", "a")], { initial_node_id: "b" }));
  assert.deepEqual(await visited(run.id), ["b", "a"]);
});

test("pass-through nodes run no task, and their mappings apply", async () => {
  const run = await curfew.runToEnd(
    workflow({
      nodes: [{ id: "one" }, { id: "two", output_mapping: { "output.from": "${input.name}" } }, { id: "three" }],
      transitions: [edge("one", "two"), edge("two", "three")],
    }),
    { name: "Ada" },
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual(run.output, { from: "Ada" });
  assert.deepEqual(await visited(run.id), ["one", "two", "three"]);
});

const failingRequest = (url: string) => ({
  nodes: [{ id: "ask", task_id: "ask" }, markNode("told", { input_mapping: { why: "${error.message}" } }), markNode("fine")],
  actions: [
    { id: "told", kind: "update_context", implementation: { set: { why: "${input.why}" } } },
    markAction("fine"),
  ],
  tasks: [{ id: "ask", steps: [request({ url }, { ref: "the-call" })] }],
});

test("a failure route is taken and can read the error", async () => {
  const run = await curfew.runToEnd(
    workflow({
      ...failingRequest("${input.url}"),
      transitions: [
        edge("ask", "fine"),
        edge("ask", "told", { on: "failure", condition: "error.class == 'not_found' && error.node_id == 'ask'" }),
      ],
      output_mapping: "${state.told}",
    }),
    { url: `${peer.url}/status/404` },
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.match(run.output.why, /404/);
  const tokens = await curfew.tokens(run.id);
  assert.deepEqual(
    tokens.map((token) => [token.node_id, token.status]),
    [["ask", "failed"], ["told", "completed"]],
  );
  assert.equal(tokens[0]?.error?.class, "not_found");
  assert.equal(tokens[0]?.error?.step_ref, "the-call");
});

test("a failure without a matching route fails the run with its error", async () => {
  const run = await curfew.runToEnd(
    workflow({
      ...failingRequest("${input.url}"),
      transitions: [edge("ask", "fine"), edge("ask", "told", { on: "failure", condition: "error.class == 'auth'" })],
    }),
    { url: `${peer.url}/status/404` },
  );
  assert.equal(run.status, "failed");
  assert.equal(run.error?.class, "not_found");
  assert.equal(run.error?.node_id, "ask");
  assert.equal(run.error?.token_id, "t1");
  assert.deepEqual(await visited(run.id), ["ask"]);
});

test("a loop fires its transition max_iterations times, then a later tier is taken", async () => {
  const run = await curfew.runToEnd(
    graph(
      ["work", "after"],
      [edge("work", "work", { loop_config: { max_iterations: 3 } }), edge("work", "after", { priority: 1 })],
    ),
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual(await visited(run.id), ["work", "work", "work", "work", "after"]);
});

test("a loop over several nodes reads the values it wrote", async () => {
  const run = await curfew.runToEnd(
    workflow({
      nodes: [
        { id: "begin", output_mapping: { "state.rounds": 0 } },
        { id: "count", output_mapping: { "state.rounds": "${state.rounds + 1}" } },
        markNode("middle"),
        { id: "end", output_mapping: { "output.rounds": "${state.rounds}" } },
      ],
      actions: [markAction("middle")],
      transitions: [
        edge("begin", "count"),
        edge("count", "middle", { condition: "state.rounds < 4" }),
        edge("count", "end", { condition: "state.rounds >= 4" }),
        edge("middle", "count"),
      ],
    }),
  );
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual(run.output, { rounds: 4 });
});

for (const [limit, value] of [["loop_iterations", 5], ["tokens_total", 4]] as const) {
  test(`${limit} ends an endless run and names the limit`, async () => {
    const run = await curfew.runToEnd(graph(["work"], [edge("work", "work")], { limits: { [limit]: value } }));
    assert.equal(run.status, "failed");
    assert.equal(run.error?.code, "limit_exceeded");
    assert.match(run.error?.message ?? "", new RegExp(limit));
  });
}

test("tokens_active is a limit, too", async () => {
  const run = await curfew.runToEnd(
    graph(["start", "a", "b", "c"], [edge("start", "a"), edge("start", "b"), edge("start", "c")], { limits: { tokens_active: 2 } }),
  );
  assert.equal(run.status, "failed");
  assert.equal(run.error?.code, "limit_exceeded");
  assert.match(run.error?.message ?? "", /tokens_active/);
});

test("a mapping that fails at run time fails its token with the expression and its place", async () => {
  const run = await curfew.runToEnd(
    workflow({
      nodes: [markNode("a"), markNode("b", { input_mapping: { x: "${state.a.nothing.here}" } })],
      actions: [markAction("a"), markAction("b")],
      transitions: [edge("a", "b")],
    }),
  );
  assert.equal(run.status, "failed");
  assert.equal(run.error?.class, "validation");
  assert.equal(run.error?.node_id, "b");
  assert.match(run.error?.message ?? "", /state\.a\.nothing\.here/);
  assert.match(run.error?.message ?? "", /input_mapping/);
});

test("a condition that fails at run time ends the run with its reason", async () => {
  const run = await curfew.runToEnd(graph(["a", "b"], [edge("a", "b", { condition: "state.a.visited > 3" })]));
  assert.equal(run.status, "failed");
  assert.equal(run.error?.class, "validation");
  assert.match(run.error?.message ?? "", /state\.a\.visited > 3/);
});

test("a failed path fails the run without waiting for the other paths", async () => {
  const path = "/hang/other-path";
  const run = await curfew.runToEnd(
    workflow({
      nodes: [{ id: "start" }, { id: "fails", task_id: "fails" }, { id: "hangs", task_id: "hangs" }],
      transitions: [edge("start", "fails"), edge("start", "hangs")],
      tasks: [
        { id: "fails", steps: [request({ url: "${input.url}/slow/200" }), check("false", "on purpose")] },
        { id: "hangs", steps: [request({ url: `\${input.url}${path}` })] },
      ],
    }),
    { url: peer.url },
  );
  assert.equal(run.status, "failed");
  assert.equal(run.error?.message, "on purpose");
  const statuses = (await curfew.tokens(run.id)).map((token) => token.status);
  assert.ok(!statuses.some((status) => ["pending", "dispatched", "executing"].includes(status)), statuses.join());
});
