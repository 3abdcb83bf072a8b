// Short ways to write the documents that tests store. Every call makes fresh ids, so tests do not meet in the catalogue.

let made = 0;
export const freshId = (prefix: string): string => `${prefix}-${process.pid}-${++made}`;

type Json = Record<string, unknown>;
export interface WorkflowDocument extends Json {
  id: string;
  nodes: Json[];
}

/** A workflow around the parts that a test is about. */
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

/** Most tests are about what follows a failure, not about the calls that are made again before it. */
export const once: Json = { retry_policy: { max_attempts: 1 } };

export const request = (implementation: Json, step: Json = {}): Json => ({
  action: { kind: "http_request", implementation, execution: once },
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

/** An action for `action_id` nodes that writes its own name: the trace of a path through the graph. */
export const mark = (id: string): Json => ({ id, kind: "update_context", implementation: { set: { visited: id } } });

/** A node of that action. */
export const marked = (id: string, more: Json = {}): Json => ({ id, action_id: id, ...more });

/** An action that sends a GET to the `url` of its input. */
export const ask: Json = { id: "ask", kind: "http_request", implementation: { url: "${input.url}" }, execution: once };

export interface FanParts {
  /** `spawn_count` or `foreach` of the transition `each`; a list of urls in the input unless told otherwise. */
  spawn?: Json;
  /** The node of the branches; it asks its item, a url, and keeps what the peer saw of the query. */
  work?: Json;
  /** Fields of `synchronization`. */
  join?: Json;
  merge?: Json;
  workflow?: Json;
}

/** start -each-> work (n times) -joined-> done, the results merged into `state.results`, which is the output. */
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
