import assert from "node:assert/strict";
import { test } from "node:test";
import type { Token } from "../../client/index.ts";
import { edgeKey, graphOf, layoutInput, nodeStates, shownEdge, shownKind, shownName, shownVisits, takenEdges, warningsByNode } from "./graph.ts";
import { layoutKey } from "./graph_key.ts";
import { layout } from "./graph_layout.ts";

const document = {
  nodes: [{ id: "begin" }, { id: "think", task_id: "t", timeout: "1m" }, { id: "ask", gate: {} }],
  transitions: [
    { from_node_id: "begin", to_node_id: "think", foreach: {} },
    { id: "again", from_node_id: "think", to_node_id: "think", loop_config: { max_iterations: 5 } },
    { from_node_id: "think", to_node_id: "ask", on: "failure", condition: "state.x" },
    { from_node_id: "think", to_node_id: "nowhere" },
  ],
};
const token = (id: string, node_id: string, status: string, more: Partial<Token> = {}) => ({ id, node_id, status, branch: null, parent_token_id: null, ...more }) as Token;

test("nodes and transitions become a graph", () => {
  const { nodes, edges } = graphOf(document);
  assert.deepEqual(nodes.map(({ id, kind, limit }) => [id, kind, limit]), [["begin", "pass-through", ""], ["think", "task t", "1m"], ["ask", "gate", ""]]);
  assert.deepEqual(edges.map(({ id, on, label }) => [id, on, label]), [["#0", "success", "for each"], ["again", "success", "at most 5 times"], ["#2", "failure", "state.x"]]);
});

test("any document has a graph", () => {
  for (const other of [undefined, null, 7, [], {}, { nodes: 3 }, { nodes: [null, {}, { id: 3 }], transitions: [1, {}] }]) assert.deepEqual(graphOf(other), { nodes: [], edges: [] });
});

test("a node shows what needs attention, its counts and its round", () => {
  const branch = (index: number) => ({ branch: { group: "g", instance: 1, index, total: 2, item: null, output: null } });
  const states = nodeStates([
    token("t1", "think", "completed"),
    token("t2", "think", "executing"),
    token("t3", "fan", "completed", branch(0)),
    token("t4", "fan", "failed", branch(1)),
    token("t5", "odd", "frozen"),
  ]);
  assert.deepEqual(states.get("think"), { status: "executing", counts: [["completed", 1], ["executing", 1]], visits: 2, round: 2 });
  assert.deepEqual([states.get("fan")?.status, states.get("fan")?.round], ["failed", 1]);
  assert.equal(states.get("odd")?.status, "frozen");
});

test("what stands at a node: how many of its tokens have ended, or the round", () => {
  const state = (counts: [string, number][], round = 1) => ({ status: "executing", counts, visits: counts.reduce((sum, [, count]) => sum + count, 0), round });
  assert.equal(shownVisits(state([["executing", 1]])), "");
  assert.equal(shownVisits(state([["completed", 600], ["failed", 400]])), "1,000");
  assert.equal(shownVisits(state([["completed", 10], ["failed", 10], ["executing", 10]])), "20 of 30");
  assert.equal(shownVisits(state([["completed", 4], ["executing", 1]], 5)), "round 5");
});

test("what undoes a node is no round of it", () => {
  const undo = (id: string, status: string) => token(id, "book", status, { compensation: true, parent_token_id: "t1" });
  const shown = (...tokens: Token[]) => {
    const state = nodeStates([token("t1", "book", "completed"), ...tokens]).get("book")!;
    return [state.status, shownVisits(state)];
  };
  assert.deepEqual(shown(undo("t4", "executing")), ["completed", "being undone"]);
  assert.deepEqual(shown(undo("t4", "completed")), ["completed", "undone"]);
  assert.deepEqual(shown(undo("t4", "failed")), ["completed", "not undone"]);
  assert.deepEqual(shown(token("t2", "book", "completed"), undo("t4", "completed"), undo("t5", "failed")), ["completed", "round 2, not undone"]);
  assert.deepEqual([...takenEdges([token("t1", "book", "completed"), undo("t4", "completed")])], []);
});

test("a node is wide enough for its limit, and what is cut says so", () => {
  const [node] = graphOf({ nodes: [{ id: "call", action_id: "ask", timeout: "900ms" }] }).nodes;
  assert.ok(node!.width >= "action ask · 900ms".length * 6 + 24, `${node!.width}`);
  assert.equal(shownKind(node!), "action ask · 900ms");
  const long = "a-node-with-an-id-as-long-as-the-api-takes-0123456789-0123456789";
  assert.ok(shownName(long).endsWith("…"));
  assert.ok(shownName(long).length * 7.4 + 42 <= 300);
  assert.equal(shownName("\u202eevil"), "⟨U+202E⟩evil");
  assert.ok(shownEdge({ id: "e", from: "a", to: "b", on: "success", label: "x".repeat(80) }).endsWith("…"));
});

test("the path that was taken", () => {
  const taken = takenEdges([token("t1", "a", "completed"), token("t2", "b", "completed", { parent_token_id: "t1" }), token("t3", "b", "completed", { parent_token_id: "t1" })]);
  assert.equal(taken.get(edgeKey("a", "b")), 2);
});

test("warnings stand at their nodes", () => {
  const at = (pointer: string) => ({ pointer, code: "c", message: "m" });
  const found = warningsByNode(document, [at("/nodes/1/timeout"), at("/transitions/2/condition"), at("/timeout"), at("/nodes/99")]);
  assert.deepEqual([...found].map(([node, list]) => [node, list.length]), [["think", 2], ["", 2]]);
});

test("the layout keeps nodes apart, and its key follows the content", () => {
  const input = layoutInput(graphOf(document));
  const placed = layout(input);
  assert.ok(placed.nodes["think"]!.y > placed.nodes["begin"]!.y + 46);
  assert.ok(placed.edges["1"]!.length > 1);
  assert.equal(layoutKey(input), layoutKey(layoutInput(graphOf(structuredClone(document)))));
  assert.notEqual(layoutKey(input), layoutKey({ ...input, edges: [] }));
});

test("the conditions of two routes are beside each other, and not on a node", () => {
  const choices = ["approve", "reject"];
  const input = layoutInput(
    graphOf({
      nodes: [{ id: "ask", gate: { choices } }, { id: "approve" }, { id: "reject" }],
      transitions: choices.map((choice) => ({ from_node_id: "ask", to_node_id: choice, condition: `state.ask.choice == '${choice}'` })),
    }),
  );
  const { labels, nodes } = layout(input);
  const [left, right] = input.edges.map(({ key, width }) => ({ x: labels[key]!.x, y: labels[key]!.y, width })).sort((a, b) => a.x - b.x);
  assert.ok(left!.width > 100 && right!.x - left!.x >= (left!.width + right!.width) / 2);
  for (const { y } of [left!, right!]) assert.ok(y > nodes["ask"]!.y + 23 + 7 && y < nodes["approve"]!.y - 23 - 7);
});

test("a loop at one node has no place for a label in the layout", () => {
  assert.deepEqual(Object.keys(layout(layoutInput(graphOf(document))).labels), ["0", "2"]);
});

test("an arrow says how often it was passed, what it follows and its condition", () => {
  const [each, loop, failure] = graphOf(document).edges;
  assert.equal(shownEdge(each!), "for each");
  assert.equal(shownEdge(loop!, 3), "×3 at most 5 times");
  assert.equal(shownEdge(failure!), "on failure state.x");
  assert.equal(shownEdge({ ...failure!, label: "x".repeat(100) }).length, 42);
});

test("200 nodes are laid out within 2 s", () => {
  const nodes = Array.from({ length: 200 }, (_, index) => ({ id: `n${index}`, width: 120, height: 46 }));
  const edges = nodes.slice(1).flatMap((_, index) => [
    { key: `a${index}`, from: `n${index}`, to: `n${index + 1}`, width: 200 },
    ...(index % 3 === 0 ? [{ key: `b${index}`, from: `n${index}`, to: `n${Math.min(index + 7, 199)}`, width: 0 }] : []),
  ]);
  const before = performance.now();
  assert.equal(Object.keys(layout({ nodes, edges }).nodes).length, 200);
  assert.ok(performance.now() - before < 2_000);
});
