// A run in virtual time: what it is, and what happens to it next.
import { AssertionError } from "node:assert";
import type { Engine } from "../engine/engine.mjs";
import type { Run, RunEvent, RunStatus, Timeout, Token } from "../client/index.ts";
import { milliseconds, type Duration } from "./durations.ts";
import { call } from "./engine.ts";
import { expectOptions, type KnownNames } from "./known_names.ts";
import type { ChoiceOf, GateOf, Named, PlaceOf, Tested, WaitOf } from "./names.ts";
import { timeline } from "./timeline.ts";
import type { Call, OpenGate, View, Wait } from "./types.ts";

/** The names that a test of a run may use. They are no part of what a test runner prints of it. */
export let namesOf: (run: SeenRun) => KnownNames;

/** What a run looks like. */
export abstract class SeenRun<Workflow extends Named = any> {
  readonly #names: KnownNames;
  protected abstract view(): View;

  static {
    namesOf = (run) => run.#names;
  }

  constructor(names: KnownNames) {
    this.#names = names;
  }

  /** The run as `GET /v1/runs/{id}` shows it. */
  get run(): Run {
    return this.view().run;
  }
  get status(): RunStatus {
    return this.run.status;
  }
  get output(): any {
    return this.run.output;
  }
  get error(): Run["error"] {
    return this.run.error;
  }
  /** Its path: one token for each visit of a node. */
  get tokens(): Token[] {
    return this.view().tokens;
  }
  /** The nodes that were visited, in order. Compensations and end handlers are not among them. */
  get visited(): string[] {
    return this.tokens.filter(({ compensation, on_end }) => !compensation && !on_end).map(({ node_id }) => node_id);
  }
  /** The nodes whose work was undone, in the order of their compensations. */
  get compensated(): string[] {
    return this.tokens.filter(({ compensation }) => compensation).map(({ node_id }) => node_id);
  }
  get events(): RunEvent[] {
    return this.view().events;
  }
  get timeouts(): Timeout[] {
    return this.view().timeouts;
  }
  /** The calls that were made, each attempt apart. Those of a compensation are at `<node>~compensate`. */
  get calls(): Call[] {
    return this.view().calls;
  }
  callsOf(node: PlaceOf<Workflow>): Call[] {
    this.#names.expectPlace(node);
    return this.calls.filter(({ node_id }) => node_id === node);
  }
  /** The runs that it called. */
  get children(): NonNullable<View["children"]> {
    return this.view().children ?? [];
  }
  /** What it waits for, if it has not ended. */
  get waits(): Wait[] {
    return this.view().waits_for ?? [];
  }
  /** The faults that happened. */
  get faults(): NonNullable<View["faults"]> {
    return this.view().faults ?? [];
  }
  /** Virtual milliseconds since the start. */
  get at_ms(): number {
    return this.view().at_ms ?? this.view().virtual_ms;
  }
  /** What happened, as lines of text. */
  timeline(): string {
    return timeline(this.view());
  }
}

export interface SeenRun<Workflow extends Named> extends Tested<Workflow> {}

/** What a run waits for from outside, by every name that a test may use. */
export function waitNames(run: SeenRun): Set<string> {
  const gates = run instanceof TestRun ? run.gates.map(({ gate }) => gate) : [];
  const waits = run.waits.filter((wait) => wait.for !== "call" && wait.for !== "time");
  return new Set([...gates, ...waits.flatMap(({ node_id, signal }) => [node_id ?? "timeout", ...(signal === undefined ? [] : [signal])])]);
}

const IDLE_STEPS_MAX = 50;

/** Beside what a person chooses and enters. */
export interface DecideOptions {
  /** The name of the person. */
  by?: string;
  comment?: string;
}

/** A run that was simulated with one seed. */
export class SeedRun<Workflow extends Named = any> extends SeenRun<Workflow> {
  readonly #view: View;
  /** What its random numbers and faults followed from. */
  readonly seed: number;

  constructor(seed: number, view: View, names: KnownNames) {
    super(names);
    this.seed = seed;
    this.#view = view;
  }

  protected view(): View {
    return this.#view;
  }
}

/** A run under way. Time passes when a test lets it pass. */
export class TestRun<Workflow extends Named = any> extends SeenRun<Workflow> {
  readonly #engine: Engine;
  readonly #session: number;
  #view: View | undefined;

  constructor(engine: Engine, body: Record<string, unknown>, names: KnownNames) {
    super(names);
    this.#engine = engine;
    this.#session = call(engine, { op: "open", ...body }).session;
  }

  protected view(): View {
    return (this.#view ??= call(this.#engine, { op: "view", session: this.#session }) as View);
  }

  /** The gates that are open. */
  get gates(): OpenGate[] {
    return this.view().gates ?? [];
  }

  /** Lets so much time pass: whatever is due meanwhile happens. */
  advance(by: Duration): this {
    return this.#step({ op: "advance", by: milliseconds(by) });
  }

  /** Lets time pass until something changes. */
  next(): this {
    return this.#step({ op: "advance", until: "change" });
  }

  /**
   * Lets time pass until the run waits for this: for a decision at the gate of a node, or `timeout`, that of the run's limit, or for a
   * signal, named by itself or by its node. A run that ends before, or waits for something else forever, is an error.
   */
  until(name: WaitOf<Workflow>): this {
    namesOf(this).expectWait(name, waitNames(this));
    for (let [idle, before] = [0, ""]; !waitNames(this).has(name); ) {
      const { run, children, at_ms, events } = this;
      // A step between runs may change neither the clock nor an event.
      const now = [at_ms, events.length, ...children.map(({ events }) => events.length)].join();
      idle = now === before ? idle + 1 : 0;
      if (run.ended_at !== null || idle > IDLE_STEPS_MAX) {
        throw new AssertionError({ message: `the run never waited for ${name}; ${run.ended_at === null ? "nothing more happens" : "it has ended"}\n\n${this.timeline()}\n`, stackStartFn: this.until });
      }
      before = now;
      this.next();
    }
    return this;
  }

  /** Lets time pass until the run has ended, or waits for what never comes by itself. The limits of gates pass, too: `until` stops before them. */
  finish(): this {
    return this.#step({ op: "advance", until: "end" });
  }

  /** A person decides at an open gate: of a node, or `timeout`, that of the run's limit. */
  decide<const Gate extends GateOf<Workflow>>(gate: Gate, choice: ChoiceOf<Workflow, Gate>, input?: unknown, options: DecideOptions = {}): this {
    expectOptions("decide", options, ["by", "comment"] satisfies (keyof DecideOptions)[]);
    return this.#control("gate", { choice, ...(input === undefined ? {} : { input }), ...options }, gate);
  }

  signal(name: string, payload: unknown = null): this {
    return this.#control("signal", payload, name);
  }

  cancel(reason?: string): this {
    return this.#control("cancel", reason === undefined ? {} : { reason });
  }

  /** The run may take so much longer. */
  extend(by: Duration): this {
    return this.#control("extend", { by_ms: milliseconds(by) });
  }

  pause(): this {
    return this.#control("pause", {});
  }

  resume(): this {
    return this.#control("resume", {});
  }

  #control(control: string, body: unknown, id?: string): this {
    return this.#step({ op: "control", control, body, ...(id === undefined ? {} : { id }) });
  }

  #step(request: Record<string, unknown>): this {
    this.#view = undefined;
    call(this.#engine, { ...request, session: this.#session });
    return this;
  }
}
