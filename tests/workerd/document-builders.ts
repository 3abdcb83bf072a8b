// Builders for the documents of tests. Every document gets a fresh id, so that tests share nothing in the catalogue.

let count = 0;
export const freshId = (prefix: string): string => `${prefix}-${process.pid}-${++count}`;

type Json = Record<string, unknown>;
export interface WorkflowDocument extends Json {
  id: string;
  nodes: Json[];
}

/** A workflow with defaults for the parts that a test does not care about. */
export function workflow(parts: Json & { nodes: Json[] }): WorkflowDocument {
  return { id: freshId("w"), timeout: "30s", on_timeout: "cancel_all", ...parts };
}

/** A workflow of one node, `work`, whose task has these steps. */
export function oneTask(steps: Json[], more: { workflow?: Json; node?: Json; task?: Json } = {}): WorkflowDocument {
  return workflow({
    nodes: [{ id: "work", task_id: "work", ...more.node }],
    tasks: [{ id: "work", steps, ...more.task }],
    output_mapping: "${state.work}",
    ...more.workflow,
  });
}

/** A workflow of one node, `work`, that sends one GET to `url`. */
export const oneRequest = (url: string, more: { workflow?: Json; node?: Json; task?: Json } = {}): WorkflowDocument =>
  oneTask([request({ url })], more);

/** One attempt per call. For tests that are not about retries. */
export const singleAttempt: Json = { retry_policy: { max_attempts: 1 } };

export const request = (implementation: Json, step: Json = {}): Json => ({
  action: { kind: "http_request", implementation, execution: singleAttempt },
  ...step,
});

export const set = (values: Json, step: Json = {}): Json => ({
  action: { kind: "update_context", implementation: { set: values } },
  ...step,
});

export const check = (condition: string, message: string, step: Json = {}): Json => ({
  action: { kind: "assert", implementation: { condition, message } },
  ...step,
});

/** An action for `action_id` nodes that records its own name, to trace the path through the graph. */
export const markAction = (id: string): Json => ({ id, kind: "update_context", implementation: { set: { visited: id } } });

/** A node that runs the action `mark(id)`. */
export const markNode = (id: string, more: Json = {}): Json => ({ id, action_id: id, ...more });

/** An action that sends a GET to the `url` of its input. */
export const ask: Json = { id: "ask", kind: "http_request", implementation: { url: "${input.url}" }, execution: singleAttempt };

export interface FanParts {
  /** `spawn_count` or `foreach` of the transition `each`; by default a list of URLs in the input. */
  spawn?: Json;
  /** The node of the branches; by default it requests its item, a URL, and returns the query that the peer saw. */
  work?: Json;
  /** Fields of `synchronization`. */
  join?: Json;
  merge?: Json;
  workflow?: Json;
}

/** start -each-> work (n times) -joined-> done. The results are merged into `state.results`, which is the output. */
export function fan({ spawn, work, join, merge, workflow: more }: FanParts): WorkflowDocument {
  const asking = {
    action_id: "ask",
    input_mapping: { url: "${url}" },
    output_mapping: { "_branch.output": "${result.body.query.n}" },
  };
  return workflow({
    nodes: [{ id: "start" }, { id: "work", ...(work ?? asking) }, { id: "done" }],
    transitions: [
      {
        id: "each",
        from_node_id: "start",
        to_node_id: "work",
        ...(spawn ?? { foreach: { collection: "input.urls", item_var: "url" } }),
      },
      {
        id: "joined",
        from_node_id: "work",
        to_node_id: "done",
        synchronization: {
          strategy: "all",
          sibling_group: "each",
          merge: { target: "state.results", ...merge },
          ...join,
        },
      },
    ],
    actions: [ask],
    output_mapping: "${state.results}",
    ...more,
  });
}

/** A workflow of one node, `call`, that runs `child` with the run's input and returns its output. */
export const callWorkflow = (child: { id: string }, more: { node?: Json; workflow?: Json } = {}): WorkflowDocument =>
  workflow({
    nodes: [{ id: "call", workflow_id: child.id, ...more.node }],
    output_mapping: "${state.call}",
    ...more.workflow,
  });

/** The child of the parent's first token, t1: the id of a child is derived from its token. */
export const childRunId = (runId: string): string => `${runId}~t1`;

/** A chain of `count` nodes that run the task `step`. */
export function chainOf(count: number, task: Json, node: Json = { output_mapping: {} }): WorkflowDocument {
  const ids = Array.from({ length: count }, (_, index) => `n${index}`);
  return workflow({
    nodes: ids.map((id) => ({ id, task_id: "step", ...node })),
    transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
    tasks: [{ id: "step", ...task }],
  });
}
