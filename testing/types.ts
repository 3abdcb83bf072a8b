// What a test says about the world around a run.
import type { components } from "../client/index.ts";
import type { Duration } from "./durations.ts";
import type { ActionOf, ChoiceOf, GateOf, Named, PlaceOf } from "./names.ts";

type SimulateBody = components["schemas"]["SimulateBody"];
type Simulation = components["schemas"]["Simulation"];
type Failure = NonNullable<Exclude<NonNullable<SimulateBody["mocks"]>[number]["fail"], string>>;

/** A class of failure. */
export type FailureClass = Failure["class"];

/** What answers calls: the first that fits and is not used up. */
export type Mock<Workflow = Named> = MockedCalls<Workflow> & MockAnswer & MockedTime;

/** Which calls. All that are written have to fit. */
export type MockedCalls<Workflow> =
  | { node: PlaceOf<Workflow>; action?: ActionOf<Workflow>; step?: string }
  | { action: ActionOf<Workflow>; node?: PlaceOf<Workflow>; step?: string }
  | { step: string; node?: PlaceOf<Workflow>; action?: ActionOf<Workflow> };

/** `result` of its step, a failure, or no answer until the deadline of the call. */
export type MockAnswer =
  | { result: unknown; fail?: never; hang?: never }
  | { fail: FailureClass | { class: FailureClass; code?: string; message?: string; retry_after?: Duration }; result?: never; hang?: never }
  | { hang: true; result?: never; fail?: never };

export interface MockedTime {
  /** How long the call takes; no time by default. */
  after?: Duration;
  /** The text that has arrived when the call fails or is cut. */
  partial?: string;
  /** How many calls it answers; any number by default. */
  times?: number;
}

/** A decision that a person makes when a gate opens, once. */
export type Decision<Workflow = Named> = { [Gate in GateOf<Workflow>]: { gate: Gate; choice: ChoiceOf<Workflow, Gate>; after?: Duration; input?: unknown; by?: string } }[GateOf<Workflow>];

/** A signal that arrives so long after the start. */
export interface Signal {
  name: string;
  at?: Duration;
  payload?: unknown;
}

/** What goes wrong around a run: in how many first events, and chances in percent. Without any odds the seed draws them. */
export type Faults = { [Name in keyof NonNullable<SimulateBody["faults"]>]?: number };

export interface KitOptions<Workflow, Child> {
  /** The document that is tested. */
  workflow: Workflow;
  /** Documents that it refers to. */
  documents?: { workflows?: readonly Child[]; tasks?: readonly object[]; actions?: readonly object[] };
  mocks?: readonly Mock<Workflow | Child>[];
  people?: readonly Decision<Workflow | Child>[];
  signals?: readonly Signal[];
  /** When runs start: Unix milliseconds or ISO 8601; 1 January 2026 by default. */
  start_at?: number | string;
  /** Tasks go by the queue, as with `CURFEW_QUEUE`. */
  queue?: boolean;
}

export interface StartOptions {
  /** The limit of the run, instead of its workflow's. */
  timeout?: Duration;
  /** What random numbers follow from: jitter and faults; 0 by default. */
  seed?: number;
  faults?: Faults;
  /** Who starts the run: a gate with `four_eyes` refuses decisions under the same name. */
  by?: string;
}

export type Call = Simulation["calls"][number];
export type Wait = NonNullable<Simulation["waits_for"]>[number];
/** A gate that is open. `gate` is its name in decisions. */
export type OpenGate = components["schemas"]["Gate"] & { gate: string };

/** A run as a simulation shows it. */
export type View = Simulation & { gates?: OpenGate[]; at_ms?: number };

