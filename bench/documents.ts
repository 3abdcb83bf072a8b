// The workflows that the bench runs.

const PURE = { kind: "update_context", implementation: { set: { node: "${input.node}" } } };
const CALL = { kind: "service_call", implementation: { binding: "STEP", path: "/", method: "POST", body: { input: { node: "${input.node}" } } } };

/** Where a node's work is done: in an executor, in the coordinator, or in a Worker that the executor calls. */
export type Way = "direct" | "inline" | "calling";

const task = (way: Way, steps = 1) => ({
  id: "step",
  ...(way === "direct" ? { dispatch: "direct" } : {}),
  steps: Array.from({ length: steps }, (_, index) => ({ ref: `s${index}`, action: way === "calling" ? CALL : PURE })),
});

const limits = { timeout: "1m", on_timeout: "cancel_all" };

export function chain(way: Way, nodes: number) {
  const ids = Array.from({ length: nodes }, (_, index) => `n${index}`);
  return {
    id: `bench-chain-${way}-${nodes}`,
    ...limits,
    nodes: ids.map((id, index) => ({ id, task_id: "step", input_mapping: { node: index } })),
    transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
    tasks: [task(way)],
  };
}

/** One node whose task calls a Worker `count` times. */
export const steps = (count: number) => ({
  id: `bench-steps-${count}`,
  ...limits,
  nodes: [{ id: "n0", task_id: "step", input_mapping: { node: 0 } }],
  tasks: [task("calling", count)],
});

/** Parallel branches, joined and merged. The start and the node after the join are tokens, too. */
export const fan = (way: Way, branches: number) => ({
  id: `bench-fan-${way}-${branches}`,
  ...limits,
  nodes: [{ id: "start" }, { id: "work", task_id: "step", input_mapping: { node: "${_branch.index}" } }, { id: "done" }],
  transitions: [
    { id: "each", from_node_id: "start", to_node_id: "work", spawn_count: branches },
    {
      from_node_id: "work",
      to_node_id: "done",
      synchronization: { sibling_group: "each", strategy: "all", merge: { target: "state.results", strategy: "append" } },
    },
  ],
  tasks: [task(way)],
  output_mapping: "${state.results.size()}",
});

/** One node that loops: the cost of a node must not grow with the nodes before it. */
export const loop = (rounds: number) => ({
  id: `bench-loop-${rounds}`,
  ...limits,
  timeout: "5m",
  limits: { tokens_total: rounds + 10, loop_iterations: rounds + 10 },
  nodes: [
    { id: "begin", output_mapping: { "state.n": 0 } },
    { id: "again", task_id: "count", input_mapping: { n: "${state.n}" }, output_mapping: { "state.n": "${result.n}" } },
  ],
  transitions: [
    { from_node_id: "begin", to_node_id: "again" },
    { from_node_id: "again", to_node_id: "again", condition: `state.n < ${rounds}` },
  ],
  on_no_match: "end",
  tasks: [{ id: "count", steps: [{ ref: "add", action: { kind: "update_context", implementation: { set: { n: "${input.n + 1}" } } } }] }],
});

/** Tokens that all wait for a signal which never comes. */
export const waitingTokens = (tokens: number) => ({
  id: `bench-waiting-${tokens}`,
  timeout: null,
  nodes: [{ id: "start" }, { id: "rest", wait: { signal: "go" } }],
  transitions: [{ id: "each", from_node_id: "start", to_node_id: "rest", spawn_count: tokens }],
});
