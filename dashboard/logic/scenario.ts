// What a simulation in the browser is made of: what calls answer and when, what people decide, which signals come. Calls are found by
// simulating: the engine says which mock is missing.
import type { Run, RunEvent, Timeout, Token } from "../../client/index.ts";
import { limitsOf, patched, patchOf, written } from "./document_limits.ts";
import { sampleOf } from "./schema_sample.ts";

type Json = Record<string, any>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const objectsIn = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

export type CallOutcome = "answers" | "fails_once" | "fails" | "hangs";

/** Calls of one step of one node. */
export interface SimulatedCall {
  key: string;
  /** The mock that the engine asked for, with its result. */
  mock: Json;
  afterMs: number;
  outcome: CallOutcome;
}

export interface SimulatedGate {
  /** The node, or `timeout` for the gate of the run's limit. */
  gate: string;
  choices: string[];
  /** Empty: nobody decides. */
  choice: string;
  afterMs: number;
  /** What is entered, where the gate asks for something. */
  input?: unknown;
}

export interface SimulatedSignal {
  name: string;
  /** It never comes otherwise. */
  comes: boolean;
  afterMs: number;
}

export interface Scenario {
  input: unknown;
  calls: SimulatedCall[];
  gates: SimulatedGate[];
  signals: SimulatedSignal[];
  /** Other lengths of the document's limits, by pointer. */
  lengths: ReadonlyMap<string, number>;
}

export interface SimulatedRun {
  run: Run;
  tokens: Token[];
  events: RunEvent[];
  timeouts: Timeout[];
  virtual_ms: number;
  dollars: number;
  waits_for?: Json[];
}

const CALL_MS = 200;
const DECISION_MS = 600_000;
const SIGNAL_MS = 60_000;
/** Each time the engine names one more call, gate or signal. */
const ROUNDS_MAX = 300;

/** What a scenario begins with: the first choice of each gate, each signal. */
export function scenarioOf(document: unknown, input: unknown): Scenario {
  const nodes = objectsIn(isObject(document) ? document["nodes"] : undefined);
  const limits = new Map(limitsOf(document).map(({ pointer, ms }) => [pointer.replace(/_ms$/, ""), ms]));
  const all = isObject(document) && Array.isArray(document["nodes"]) ? document["nodes"] : [];
  const gates = nodes.filter(({ id, gate }) => typeof id === "string" && isObject(gate)).map((node): SimulatedGate => {
    const choices = (Array.isArray(node["gate"]["choices"]) ? node["gate"]["choices"] : ["approve", "reject"]).filter((choice: unknown) => typeof choice === "string");
    const limit = limits.get(`/nodes/${all.indexOf(node)}/gate/timeout`) ?? limits.get(`/nodes/${all.indexOf(node)}/timeout`) ?? Infinity;
    return { gate: node["id"], choices, choice: choices[0] ?? "", afterMs: Math.min(DECISION_MS, limit / 2), ...inputAt(node["id"], [document]) };
  });
  const names = new Set(nodes.map(({ wait }) => (isObject(wait) ? wait["signal"] : undefined)).filter((name) => typeof name === "string"));
  return { input, calls: [], gates, signals: [...names].map((name) => ({ name, comes: true, afterMs: SIGNAL_MS })), lengths: new Map() };
}

/** What a gate of these workflows asks for, with a value that fits. */
function inputAt(gate: string, workflows: readonly unknown[]): { input?: unknown } {
  for (const workflow of workflows) {
    const node = objectsIn(isObject(workflow) ? workflow["nodes"] : undefined).find(({ id, gate: held }) => id === gate && isObject(held));
    if (node) return isObject(node["gate"]["input_schema"]) ? { input: sampleOf(node["gate"]["input_schema"]) } : {};
  }
  return {};
}

/** The request of the engine. */
export function requestOf(document: unknown, documents: Json, scenario: Scenario): Json {
  const { input, calls, gates, signals, lengths } = scenario;
  return {
    op: "simulate",
    workflow: withoutFourEyes(patched(document, patchOf(limitsOf(document), lengths))),
    documents: { ...documents, ...(Array.isArray(documents["workflows"]) && { workflows: documents["workflows"].map(withoutFourEyes) }) },
    input,
    mocks: calls.flatMap(mocksOf),
    // As often as the gate opens: in a loop, in each branch.
    people: gates.filter(({ choice }) => choice !== "").flatMap((gate) => Array.from({ length: gate.gate === "timeout" ? 1 : 50 }, () => decisionOf(gate))).slice(0, 1_000),
    signals: signals.filter(({ comes }) => comes).map(({ name, afterMs }) => ({ name, at: Math.round(afterMs), payload: {} })),
  };
}

/** A run that is simulated is started by nobody, and who decides is not what a simulation is asked about. */
function withoutFourEyes(document: unknown): unknown {
  if (!isObject(document) || !Array.isArray(document["nodes"])) return document;
  const nodes = document["nodes"].map((node) => {
    if (!isObject(node) || !isObject(node["gate"]) || node["gate"]["four_eyes"] === undefined) return node;
    const { four_eyes: _, ...gate } = node["gate"];
    return { ...node, gate };
  });
  return { ...document, nodes };
}

function mocksOf({ mock, afterMs, outcome }: SimulatedCall): Json[] {
  const { result, ...place } = mock;
  const after = Math.round(afterMs);
  const answers = { ...place, after, result };
  switch (outcome) {
    case "answers":
      return [answers];
    case "fails":
      return [{ ...place, after, fail: "server_error" }];
    case "fails_once":
      return [{ ...place, after, fail: "server_error", times: 1 }, answers];
    case "hangs":
      return [{ ...place, hang: true }];
  }
}

const decisionOf = ({ gate, choice, afterMs, input }: SimulatedGate): Json => ({
  gate,
  choice,
  after: Math.round(afterMs),
  by: "simulated",
  ...(gate === "timeout" && choice === "extend" ? { input: { by: written(3_600_000) } } : input !== undefined && { input }),
});

/** What a refusal of the engine has. */
interface Refused {
  code?: unknown;
  details?: unknown;
}

/** Simulates, and adds what the engine asks for until it can answer. */
export async function played(ask: (request: Json) => Promise<unknown>, document: unknown, documents: Json, scenario: Scenario): Promise<{ simulated: SimulatedRun; scenario: Scenario }> {
  let current = scenario;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    try {
      const simulated = (await ask(requestOf(document, documents, current))) as SimulatedRun;
      const next = withWaits(current, simulated.waits_for ?? [], Array.isArray(documents["workflows"]) ? documents["workflows"] : []);
      if (next === current) return { simulated, scenario: withLimitGate(current, simulated.events) };
      current = next;
    } catch (error) {
      const { code, details } = error as Refused;
      const mock = code === "no_mock" && isObject(details) ? details["mock"] : undefined;
      const key = callKey(mock);
      if (!isObject(mock) || current.calls.some((call) => call.key === key)) throw error;
      current = { ...current, calls: [...current.calls, { key, mock, afterMs: CALL_MS, outcome: "answers" }] };
    }
  }
  throw new Error(`the workflow makes more than ${ROUNDS_MAX} different calls; simulate it with POST /v1/simulate`);
}

const callKey = (mock: unknown): string => (isObject(mock) ? [mock["node"], mock["step"], mock["action"]].filter((part) => typeof part === "string").join(" / ") : "");

/** Gates and signals of called workflows are found when the run waits for them. */
function withWaits(scenario: Scenario, waits: readonly Json[], called: readonly unknown[]): Scenario {
  let next = scenario;
  for (const wait of waits) {
    const add = wait["add"];
    if (!isObject(add)) continue;
    const { gate, choice } = add;
    if (wait["for"] === "decision" && typeof gate === "string" && typeof choice === "string" && !next.gates.some((known) => known.gate === gate)) {
      const choices = Array.isArray(wait["choices"]) ? wait["choices"].filter((choice) => typeof choice === "string") : [choice];
      next = { ...next, gates: [...next.gates, { gate, choices, choice, afterMs: DECISION_MS, ...inputAt(gate, called) }] };
    }
    const name = wait["for"] === "signal" ? (add["name"] ?? wait["signal"]) : undefined;
    if (typeof name === "string" && !next.signals.some((known) => known.name === name)) next = { ...next, signals: [...next.signals, { name, comes: true, afterMs: SIGNAL_MS }] };
  }
  return next;
}

/** The gate of the run's limit gets a row when it has opened. */
function withLimitGate(scenario: Scenario, events: readonly RunEvent[]): Scenario {
  const hasOpened = events.some(({ kind, gate_kind }) => kind === "gate_opened" && gate_kind === "workflow_timeout");
  if (!hasOpened || scenario.gates.some(({ gate }) => gate === "timeout")) return scenario;
  return { ...scenario, gates: [...scenario.gates, { gate: "timeout", choices: ["extend", "abort", "fail"], choice: "", afterMs: DECISION_MS }] };
}

/** What was found while simulating, in the scenario that may have changed meanwhile. The same one if there is nothing new. */
export function merged(current: Scenario, found: Scenario): Scenario {
  const calls = found.calls.filter(({ key }) => !current.calls.some((known) => known.key === key));
  const gates = found.gates.filter(({ gate }) => !current.gates.some((known) => known.gate === gate));
  const signals = found.signals.filter(({ name }) => !current.signals.some((known) => known.name === name));
  if (calls.length + gates.length + signals.length === 0) return current;
  return { ...current, calls: [...current.calls, ...calls], gates: [...current.gates, ...gates], signals: [...current.signals, ...signals] };
}

export interface Reference {
  kind: "workflows" | "tasks" | "actions";
  id: string;
  version: number | undefined;
}

/** The documents of the catalogue that a document refers to; those that it has inline are not among them. */
export function referencesOf(document: unknown): Reference[] {
  if (!isObject(document)) return [];
  const found: Reference[] = [];
  const inline = (kind: "tasks" | "actions", id: unknown): boolean => objectsIn(document[kind]).some((item) => item["id"] === id);
  const take = (holder: unknown): void => {
    if (!isObject(holder)) return;
    for (const [kind, name] of [["workflows", "workflow"], ["tasks", "task"], ["actions", "action"]] as const) {
      const id = holder[`${name}_id`];
      if (typeof id !== "string" || (kind !== "workflows" && inline(kind, id))) continue;
      const version = holder[`${name}_version`];
      found.push({ kind, id, version: typeof version === "number" ? version : undefined });
    }
  };
  const takeAction = (action: unknown): void => {
    if (isObject(action) && action["kind"] === "workflow_call") take(action["implementation"]);
  };
  const takeSteps = (task: Json): void => objectsIn(task["steps"]).forEach((item) => (take(item), takeAction(item["action"])));
  objectsIn(document["nodes"]).forEach((node) => (take(node), take(node["compensate"])));
  objectsIn(document["on_end"]).forEach(take);
  objectsIn(document["tasks"]).forEach(takeSteps);
  // The document may be a task or an action itself.
  takeSteps(document);
  objectsIn(document["actions"]).forEach(takeAction);
  takeAction(document);
  return found;
}
