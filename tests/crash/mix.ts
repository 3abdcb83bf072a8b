// The workflows of the crash and the load test. Each asks the peer for its steps and has as output what the peer said to each:
// `{step: {value, receipt}}`. What the values must be is computed here a second time, without Curfew.
import { once, workflow, type WorkflowDocument } from "../workerd/documents.ts";
import type { Client } from "./client.ts";
import { next } from "./peer.ts";

type Json = Record<string, unknown>;

export interface Kind {
  name: string;
  /** Stored before the first run; runs are of the last. */
  documents: WorkflowDocument[];
  /** The node of every token of a run, in the order of the alphabet. */
  nodes(n: number): string[];
  /** What the output must say of each step, for the input `n`. */
  values(n: number): Record<string, number>;
  /** The steps that were asked of the peer, each with the one it was told about; the last is the end of the run. */
  calls(n: number): [step: string, before: string | null][];
  /** Only a peer that honours the key can be asked. */
  keyedOnly?: boolean;
  /** What somebody outside has to do. May be repeated. */
  attend?(client: Client, runId: string, n: number): Promise<void>;
}

const HTTP: Json = {
  id: "call",
  kind: "http_request",
  implementation: { method: "POST", url: "${input.url}", body: { value: "${input.value}", previous: "${input.previous}" } },
  execution: once,
};
/** The user's own Worker, which asks the peer on behalf of the step. */
const SERVICE: Json = {
  id: "call",
  kind: "service_call",
  implementation: { binding: "ECHO", path: "/forward", method: "POST", body: "${input}" },
  execution: once,
};
const ASYNC: Json = {
  id: "call",
  kind: "http_request",
  implementation: {
    method: "POST",
    url: "${input.url}",
    body: { value: "${input.value}", previous: "${input.previous}", bring_to: "${callback.url}" },
  },
  execution: { ...once, mode: "async" },
};

/** After a kill the attempt that lay in the queue, or was out of it, is made again as often as it takes. */
const QUEUE: Json = { dispatch: "queue", timeout: "30s", on_timeout: "retry", max_retries: 50 };
const DIRECT: Json = { dispatch: "direct" };

interface Call {
  /** Where its value comes from: an expression. */
  value?: string;
  before?: string | null;
  result?: string;
  more?: Json;
}

/** A node that asks the peer for one step. */
function call(id: string, { value = "input.n", before = null, result = "result.body", more = DIRECT }: Call = {}): Json {
  return {
    id,
    action_id: "call",
    input_mapping: {
      url: `\${input.base}/${id}`,
      value: `\${${value}}`,
      previous: before === null ? 0 : `\${state.steps.${before}.receipt}`,
    },
    output_mapping: { [`state.steps.${id}`]: `\${${result}}` },
    ...more,
  };
}

/** A document of this mix: no limit of its own is near, so whatever ends a run early is a fault. */
const document = (parts: Json & { nodes: Json[] }): WorkflowDocument =>
  workflow({ timeout: "10m", on_timeout: "fail", actions: [HTTP], output_mapping: "${state.steps}", ...parts });

const inARow = (ids: string[]): Json[] => ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id }));

/** `count` calls, each of the value the one before it brought. */
function chain(name: string, count: number, parts: { action?: Json; result?: string; more?: Json } = {}): Kind {
  const ids = Array.from({ length: count }, (_, index) => `s${index}`);
  const before = (index: number) => ids[index - 1] ?? null;
  const nodes = ids.map((id, index) => {
    const value = index === 0 ? "input.n" : `state.steps.${before(index)}.value`;
    return call(id, { ...parts, value, before: before(index) });
  });
  return {
    name,
    documents: [document({ nodes, transitions: inARow(ids), actions: [parts.action ?? HTTP] })],
    nodes: () => ids,
    calls: () => ids.map((id, index) => [id, before(index)]),
    values: (n) => inTurn(n, ids),
  };
}

function inTurn(n: number, ids: string[]): Record<string, number> {
  const values: Record<string, number> = {};
  for (const id of ids) values[id] = n = next(n);
  return values;
}

/** 20 tasks inside the decision, a call, and 20 more of which the last is seen by a second call. */
function inline(): Kind {
  const [first, second] = ["a", "b"].map((letter) => Array.from({ length: 20 }, (_, n) => `${letter}${String(n).padStart(2, "0")}`));
  const count = (id: string, from: string): Json => ({
    id,
    task_id: "count",
    dispatch: "inline",
    input_mapping: { value: `\${${from}}` },
    output_mapping: { "state.value": "${result.value}" },
  });
  const half = (ids: string[], from: string) => ids.map((id, index) => count(id, index === 0 ? from : "state.value"));
  const nodes = [
    ...half(first!, "input.n"),
    call("mid", { value: "state.value" }),
    ...half(second!, "state.steps.mid.value"),
    call("end", { value: "state.value", before: "mid" }),
  ];
  const ids = nodes.map((node) => String(node["id"]));
  const set = { value: "${(input.value * 3 + 1) % 1000}" };
  const tasks = [{ id: "count", steps: [{ action: { kind: "update_context", implementation: { set } } }] }];
  return {
    name: "inline",
    documents: [document({ nodes, transitions: inARow(ids), tasks })],
    nodes: () => [...ids].sort(),
    calls: () => [["mid", null], ["end", "mid"]],
    values: (n) => {
      const all = inTurn(n, ids);
      return { mid: all["mid"]!, end: all["end"]! };
    },
  };
}

/** Branches that are merged by their index, and a call that follows the merge. */
function fan(name: string, width: number, more: Json): Kind {
  const branches = Array.from({ length: width }, (_, index) => String(index));
  const work: Json = {
    id: "work",
    action_id: "call",
    input_mapping: { url: "${input.base}/${_branch.index}", value: "${input.n + _branch.index}", previous: 0 },
    output_mapping: { "_branch.output": "${result.body}" },
    ...more,
  };
  const synchronization = {
    strategy: "all",
    sibling_group: "each",
    timeout_ms: null,
    merge: { target: "state.steps", strategy: "keyed_by_branch" },
  };
  return {
    name,
    documents: [
      document({
        nodes: [{ id: "begin" }, work, call("end", { value: "state.steps['0'].value" })],
        transitions: [
          { id: "each", from_node_id: "begin", to_node_id: "work", spawn_count: width },
          { id: "joined", from_node_id: "work", to_node_id: "end", synchronization },
        ],
      }),
    ],
    nodes: () => ["begin", "end", ...branches.map(() => "work")],
    calls: () => [...branches.map((id): [string, null] => [id, null]), ["end", null]],
    values: (n) => ({ ...Object.fromEntries(branches.map((id) => [id, next(n + Number(id))])), end: next(next(n)) }),
  };
}

/** A chain as a run of its own, and a call that follows it. */
function subworkflow(): Kind {
  const child = chain("child", 2);
  const parent = document({
    nodes: [
      { id: "child", workflow_id: child.documents[0]!.id, output_mapping: { "state.steps": "${result}" } },
      call("end", { value: "state.steps.s1.value", before: "s1" }),
    ],
    transitions: inARow(["child", "end"]),
  });
  return {
    name: "subworkflow",
    documents: [...child.documents, parent],
    nodes: () => ["child", "end"],
    calls: () => [["s0", null], ["s1", "s0"], ["end", "s1"]],
    values: (n) => inTurn(n, ["s0", "s1", "end"]),
  };
}

/** A person chooses the way: `yes` where n is even. */
function gate(): Kind {
  const chosen = (n: number) => (n % 2 === 0 ? "yes" : "no");
  return {
    name: "gate",
    documents: [
      document({
        nodes: [
          call("s0"),
          { id: "review", gate: { choices: ["yes", "no"], timeout: "9m" } },
          call("yes", { value: "state.steps.s0.value", before: "s0" }),
          call("no", { value: "state.steps.s0.value + 1", before: "s0" }),
        ],
        transitions: [
          { from_node_id: "s0", to_node_id: "review" },
          { from_node_id: "review", to_node_id: "yes", condition: "state.review.choice == 'yes'" },
          { from_node_id: "review", to_node_id: "no", condition: "state.review.choice == 'no'" },
        ],
      }),
    ],
    nodes: (n) => [chosen(n), "review", "s0"].sort(),
    calls: (n) => [["s0", null], [chosen(n), "s0"]],
    values: (n) => ({ s0: next(n), [chosen(n)]: next(next(n) + (n % 2)) }),
    attend: async (client, runId, n) => {
      const gateId = await client.openGate(runId);
      await client.heard("POST", `/v1/runs/${runId}/gates/${gateId}`, { choice: chosen(n) });
    },
  };
}

/** Sleeps, waits for a signal that brings a number, and asks with it. */
function waits(): Kind {
  return {
    name: "waits",
    documents: [
      document({
        nodes: [
          call("s0"),
          { id: "sleep", wait: { sleep: "1200ms" } },
          { id: "word", wait: { signal: "word", timeout: "9m" } },
          call("s1", { value: "state.word.n", before: "s0" }),
        ],
        transitions: inARow(["s0", "sleep", "word", "s1"]),
      }),
    ],
    nodes: () => ["s0", "s1", "sleep", "word"],
    calls: () => [["s0", null], ["s1", "s0"]],
    values: (n) => ({ s0: next(n), s1: next(n + 7) }),
    attend: async (client, runId, n) => client.heard("POST", `/v1/runs/${runId}/signals/word`, { n: n + 7 }),
  };
}

export function mix(): Kind[] {
  return [
    chain("direct", 4),
    chain("service", 3, { action: SERVICE, result: "result" }),
    chain("queue", 3, { more: QUEUE }),
    { ...chain("callback", 2, { action: ASYNC, result: "result" }), keyedOnly: true },
    inline(),
    fan("fan", 6, DIRECT),
    fan("fan by queue", 4, QUEUE),
    subworkflow(),
    gate(),
    waits(),
  ];
}
