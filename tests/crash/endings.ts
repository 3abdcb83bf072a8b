// Workflows of the crash test that do not complete: they fail, time out or are cancelled, and undo their work before they end. The
// undo of a step is requested as `undo-{receipt}`: the receipt names the effect that is undone. `report` is the end handler.
import { singleAttempt, workflow, type WorkflowDocument } from "../workerd/document-builders.ts";
import { until } from "../workerd/poll.ts";
import { WAIT_MS, type Client } from "./client.ts";
import type { Kind } from "./workflows.ts";

type Json = Record<string, unknown>;

/** The expected end of a run that does not complete. */
export interface Ending {
  status: "failed" | "timed_out" | "cancelled";
  /** Every step is done before the run ends. Otherwise the run may end during any of them. */
  whole: boolean;
  /** The expected end of its child run, and of a child that had completed. */
  child?: "failed" | "timed_out" | "cancelled" | "completed";
}

const ACTION: Json = {
  id: "call",
  kind: "http_request",
  implementation: {
    method: "POST",
    url: "${input.url}",
    body: { value: "${input.value}", previous: "${input.previous}", status: "${input.status}" },
  },
  execution: singleAttempt,
};
const REFUSE: Json = { id: "refuse", kind: "assert", implementation: { condition: "false", message: "refused" } };

/** Requests the undo of the effect with the receipt `of`. The limit leads to a direct call; without one it goes by the queue. */
const undo = (of: string, limit: Json = { timeout: "50s" }): Json => ({
  action_id: "call",
  input_mapping: { url: `\${input.base}/undo-\${${of}}`, value: "${input.n}", previous: `\${${of}}`, status: "compensating" },
  ...limit,
});

/** A node that requests one step of the peer, and its undo. */
const step = (id: string, more: Json = {}): Json => ({
  id,
  action_id: "call",
  dispatch: "direct",
  input_mapping: { url: `\${input.base}/${id}`, value: "${input.n}", previous: 0, status: "running" },
  output_mapping: { [`state.steps.${id}`]: "${result.body}" },
  compensate: undo("result.body.receipt"),
  ...more,
});

/** The first is requested at every end, the second only where the run completes. */
const handlers = (name: string): Json[] =>
  [name, `${name}-completed`].map((step, index) => ({
    ...(index === 0 ? {} : { on: ["completed"] }),
    action_id: "call",
    input_mapping: { url: `\${input.base}/${step}`, value: "${input.n}", previous: 0, status: "${run.status}" },
  }));

const document = (parts: Json & { nodes: Json[] }): WorkflowDocument =>
  workflow({
    timeout: "10m",
    on_timeout: "fail",
    actions: [ACTION, REFUSE],
    on_end: handlers("report"),
    output_mapping: "${state.steps}",
    ...parts,
  });

const WIDTH = 3;
/** Three branches, each with its own undo. */
const BRANCHES = {
  node: step("work", {
    input_mapping: { url: "${input.base}/${_branch.index}", value: "${input.n}", previous: 0, status: "running" },
    output_mapping: { "_branch.output": "${result.body}" },
  }),
  transitions: (from: string, to: string): Json[] => [
    { id: "each", from_node_id: from, to_node_id: "work", spawn_count: WIDTH },
    {
      id: "joined",
      from_node_id: "work",
      to_node_id: to,
      synchronization: {
        strategy: "all",
        sibling_group: "each",
        timeout_ms: null,
        merge: { target: "state.branches", strategy: "keyed_by_branch" },
      },
    },
  ],
};

/** s0, three branches and s1, then `last`. */
const withBranches = (last: Json, parts: Json = {}): WorkflowDocument =>
  document({
    nodes: [step("s0"), BRANCHES.node, step("s1", { compensate: undo("result.body.receipt", {}) }), last],
    transitions: [
      ...BRANCHES.transitions("s0", "s1"),
      { from_node_id: "s1", to_node_id: last["id"] },
    ],
    ...parts,
  });

const FOREVER: Json = { id: "forever", wait: { sleep: "9m" } };
const REFUSED: Json = { id: "refused", action_id: "refuse" };

/** A client cancels once `at` of the input has reached the peer, and a second time while the run compensates or after it. */
const cancelTwice =
  (at: (n: number) => string) =>
  async (client: Client, runId: string, n: number, reached: (step: string) => Promise<unknown>): Promise<void> => {
    await reached(at(n));
    const cancel = () => client.sendOnce("POST", `/v1/runs/${runId}/cancel`, { reason: "enough" });
    await cancel();
    await until(`${runId} compensates`, async () => (await client.run(runId)).status !== "running", WAIT_MS);
    await cancel();
  };

/** The kinds that end with compensations. The last call of all of them is the end handler's. */
export function endingKinds(): Kind[] {
  const kind = (name: string, ending: Ending, documents: WorkflowDocument[], more: Partial<Kind> = {}): Kind => ({
    name,
    documents,
    ending,
    nodes: () => [],
    values: () => ({}),
    calls: () => [["s0", null], ["report", null]],
    ...more,
  });
  const steps = ["s0", "0", "1", "2", "s1"];
  const child = (last: Json, parts: Json = {}) =>
    document({
      nodes: [step("c0"), step("c1"), ...(last["id"] ? [last] : [])],
      transitions: [
        { from_node_id: "c0", to_node_id: "c1" },
        ...(last["id"] ? [{ from_node_id: "c1", to_node_id: last["id"] }] : []),
      ],
      on_end: handlers("report-child"),
      ...parts,
    });
  const parent = (of: WorkflowDocument, node: Json = {}, last?: Json) =>
    document({
      nodes: [step("s0"), { id: "child", workflow_id: of.id, output_mapping: {}, ...node }, ...(last ? [last] : [])],
      transitions: [
        { from_node_id: "s0", to_node_id: "child" },
        ...(last ? [{ from_node_id: "child", to_node_id: last["id"] }] : []),
      ],
    });
  const [failing, endless, good] = [child(REFUSED), child(FOREVER), child({})];
  return [
    kind("fails", { status: "failed", whole: true }, [withBranches(REFUSED)]),
    kind("times out", { status: "timed_out", whole: false }, [
      withBranches(FOREVER, { timeout: "6s", on_timeout: "cancel_all" }),
    ]),
    kind("cancelled", { status: "cancelled", whole: false }, [withBranches(FOREVER)], {
      interact: cancelTwice((n) => steps[n % steps.length]!),
    }),
    kind("child fails", { status: "failed", whole: true, child: "failed" }, [failing, parent(failing)]),
    kind("child cancelled", { status: "cancelled", whole: false, child: "cancelled" }, [endless, parent(endless)], {
      interact: cancelTwice((n) => ["c0", "c1"][n % 2]!),
    }),
    kind("child undone", { status: "failed", whole: true, child: "completed" }, [
      good,
      parent(good, { compensate: undo("result.c1.receipt") }, REFUSED),
    ]),
  ];
}
