// The workflows of the crash and the load test. Each requests steps of the peer, and its output contains the peer's responses:
// `{step: {value, receipt}}`. The expected values are computed here independently of Curfew.
import { singleAttempt, workflow, type WorkflowDocument } from "../workerd/document-builders.ts";
import type { Client } from "./client.ts";
import type { Ending } from "./endings.ts";
import { next } from "./recording-peer.ts";

type Json = Record<string, unknown>;

export interface Kind {
  name: string;
  /** Stored before the first run; runs are started of the last document. */
  documents: WorkflowDocument[];
  /** The nodes of all tokens of a run, sorted. */
  nodes(n: number): string[];
  /** The expected value of each step, for the input `n`. */
  values(n: number): Record<string, number>;
  /** The steps requested of the peer, each with its predecessor; the last is the end of the run. */
  calls(n: number): [step: string, before: string | null][];
  /** Requires a peer that honours the key. */
  keyedOnly?: boolean;
  /** Present in kinds that do not complete. */
  ending?: Ending;
  /** What a client has to do during the run. May be repeated. */
  interact?(client: Client, runId: string, n: number, reached: (step: string) => Promise<unknown>): Promise<void>;
}

const HTTP: Json = {
  id: "call",
  kind: "http_request",
  implementation: { method: "POST", url: "${input.url}", body: { value: "${input.value}", previous: "${input.previous}" } },
  execution: singleAttempt,
};
/** The user's Worker, which forwards the request of the step to the peer. */
const SERVICE: Json = {
  id: "call",
  kind: "service_call",
  implementation: { binding: "ECHO", path: "/forward", method: "POST", body: "${input}" },
  execution: singleAttempt,
};
const ASYNC: Json = {
  id: "call",
  kind: "http_request",
  implementation: {
    method: "POST",
    url: "${input.url}",
    body: { value: "${input.value}", previous: "${input.previous}", callback_url: "${callback.url}" },
  },
  execution: { ...singleAttempt, mode: "async" },
};

/** After a kill, queued and claimed attempts are repeated as often as necessary. */
const QUEUE: Json = { dispatch: "queue", timeout: "30s", on_timeout: "retry", max_retries: 50 };
const DIRECT: Json = { dispatch: "direct" };

interface Call {
  /** The expression for its value. */
  value?: string;
  before?: string | null;
  result?: string;
  more?: Json;
}

/** A node that requests one step of the peer. */
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

/** A document of this mix. Its timeouts are far away, so that an early end is a violation. */
const document = (parts: Json & { nodes: Json[] }): WorkflowDocument =>
  workflow({ timeout: "10m", on_timeout: "fail", actions: [HTTP], output_mapping: "${state.steps}", ...parts });

const sequence = (ids: string[]): Json[] => ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id }));

/** `count` calls, each with the value of the previous one. */
function chain(name: string, count: number, parts: { action?: Json; result?: string; more?: Json } = {}): Kind {
  const ids = Array.from({ length: count }, (_, index) => `s${index}`);
  const before = (index: number) => ids[index - 1] ?? null;
  const nodes = ids.map((id, index) => {
    const value = index === 0 ? "input.n" : `state.steps.${before(index)}.value`;
    return call(id, { ...parts, value, before: before(index) });
  });
  return {
    name,
    documents: [document({ nodes, transitions: sequence(ids), actions: [parts.action ?? HTTP] })],
    nodes: () => ids,
    calls: () => ids.map((id, index) => [id, before(index)]),
    values: (n) => valuesInTurn(n, ids),
  };
}

function valuesInTurn(n: number, ids: string[]): Record<string, number> {
  const values: Record<string, number> = {};
  for (const id of ids) values[id] = n = next(n);
  return values;
}

/** 20 inline tasks, a call, and 20 more, whose last result goes to a second call. */
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
    documents: [document({ nodes, transitions: sequence(ids), tasks })],
    nodes: () => [...ids].sort(),
    calls: () => [["mid", null], ["end", "mid"]],
    values: (n) => {
      const all = valuesInTurn(n, ids);
      return { mid: all["mid"]!, end: all["end"]! };
    },
  };
}

/** Branches that are merged by index, and a call after the merge. */
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

/** A chain as a child run, and a call after it. */
function subworkflow(): Kind {
  const child = chain("child", 2);
  const parent = document({
    nodes: [
      { id: "child", workflow_id: child.documents[0]!.id, output_mapping: { "state.steps": "${result}" } },
      call("end", { value: "state.steps.s1.value", before: "s1" }),
    ],
    transitions: sequence(["child", "end"]),
  });
  return {
    name: "subworkflow",
    documents: [...child.documents, parent],
    nodes: () => ["child", "end"],
    calls: () => [["s0", null], ["s1", "s0"], ["end", "s1"]],
    values: (n) => valuesInTurn(n, ["s0", "s1", "end"]),
  };
}

/** A decision selects the route: `yes` if n is even. */
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
    interact: async (client, runId, n) => {
      const gateId = await client.openGate(runId);
      await client.sendOnce("POST", `/v1/runs/${runId}/gates/${gateId}`, { choice: chosen(n) });
    },
  };
}

/** Sleeps, waits for a signal with a number, and makes a call with it. */
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
        transitions: sequence(["s0", "sleep", "word", "s1"]),
      }),
    ],
    nodes: () => ["s0", "s1", "sleep", "word"],
    calls: () => [["s0", null], ["s1", "s0"]],
    values: (n) => ({ s0: next(n), s1: next(n + 7) }),
    interact: async (client, runId, n) => client.sendOnce("POST", `/v1/runs/${runId}/signals/word`, { n: n + 7 }),
  };
}

export function workflowKinds(): Kind[] {
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
