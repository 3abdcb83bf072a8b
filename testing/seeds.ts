// Many seeds of one workflow. What fails is reported with its shortest history: the one whose faults stop first and that still fails.
import { EngineError, type Engine } from "../engine/engine.mjs";
import type { Duration } from "./durations.ts";
import { call } from "./engine.ts";
import { UnknownName, type KnownNames } from "./known_names.ts";
import { SeedRun } from "./run.ts";
import { momentOf } from "./timeline.ts";
import type { Faults, View } from "./types.ts";

export interface SeedOptions {
  input?: unknown;
  /** The limit of the runs, instead of their workflow's. */
  timeout?: Duration;
  /** Which faults; by default the seed draws them. */
  faults?: Faults;
  /** 0 by default. */
  first_seed?: number;
  /** Who starts the runs. */
  by?: string;
}

/** What happened in all runs. */
export interface SeedSummary {
  seeds: number;
  /** How many runs ended with each status. */
  statuses: Partial<Record<string, number>>;
  /** How many runs ended with each code of an error. */
  errors: Partial<Record<string, number>>;
  /** How many faults happened. */
  faults: number;
}

/** A seed that fails. `run` is its shortest history, if there was one. */
export class SeedFailure extends Error {
  readonly seed: number;
  /** The faults that repeat it, for `start(input, { seed, faults })`. */
  readonly faults: Faults;
  readonly run: SeedRun | undefined;

  constructor(message: string, seed: number, faults: Faults, run: SeedRun | undefined, cause: unknown) {
    super(message, { cause });
    this.name = "SeedFailure";
    this.seed = seed;
    this.faults = faults;
    this.run = run;
  }
}

interface Plan {
  count: number;
  first_seed: number;
  faults: Faults;
  /** What else a start needs to repeat a seed. */
  more: Pick<SeedOptions, "timeout" | "by">;
  names: KnownNames;
  check: ((run: SeedRun) => unknown) | undefined;
}

/** Of one request: enough that what they share counts little, few enough that a failure shows at once. */
const BATCH = 25;

export function everySeed(engine: Engine, body: Record<string, unknown>, plan: Plan): SeedSummary {
  const { first_seed } = plan;
  if (!Number.isSafeInteger(plan.count) || plan.count < 1) throw new TypeError(`everySeed(${plan.count}): write how many seeds, 1 or more`);
  const summary: SeedSummary = { seeds: 0, statuses: {}, errors: {}, faults: 0 };
  const end = first_seed + plan.count;
  for (let seed = first_seed; seed < end; ) {
    const { answers } = call(engine, { op: "simulate_seeds", ...body, first_seed: seed, seeds: Math.min(BATCH, end - seed) });
    for (const answer of answers as Answer[]) {
      const failure = failureOf(answer, plan);
      if (failure !== undefined) throw reported(engine, body, answer.seed, failure, plan);
      const { run, faults: happened = [] } = answer.ok!;
      summary.seeds += 1;
      count(summary.statuses, run.status);
      if (run.error !== null) count(summary.errors, run.error.code);
      summary.faults += happened.length;
      seed = answer.seed + 1;
    }
  }
  return summary;
}

const count = (counts: Partial<Record<string, number>>, name: string): void => void (counts[name] = (counts[name] ?? 0) + 1);

interface Answer {
  seed: number;
  ok?: View;
  error?: ConstructorParameters<typeof EngineError>[0];
}

interface Failure {
  why: string;
  cause: unknown;
  run: SeedRun | undefined;
}

/** What is wrong with a run. */
function failureOf({ seed, ok, error }: Answer, { names, check }: Plan): Failure | undefined {
  if (ok === undefined) {
    const cause = new EngineError(error!);
    return { why: cause.message, cause, run: undefined };
  }
  const run = new SeedRun(seed, ok, names);
  if (ok.violations?.length) return { why: `${ok.violations.join("; ")}. This is a bug in Curfew: please report it`, cause: undefined, run };
  if (ok.run.ended_at === null) return { why: `the run has not ended: ${waitsOf(ok)}`, cause: undefined, run };
  // The simulator does not refuse so many commits in a row that Curfew has to give a run up.
  if (isGivenUp(ok)) return { why: `${ok.run.error?.message}. Please report it`, cause: undefined, run };
  try {
    const result = check?.(run);
    if (typeof (result as PromiseLike<unknown> | undefined)?.then === "function") throw new TypeError("the check of everySeed returned a promise; it must look at the run at once");
    return undefined;
  } catch (cause) {
    return { why: cause instanceof Error ? cause.message : String(cause), cause, run };
  }
}

/** Whether Curfew gave up a run, one that it called, or one of their tokens. A code alone may be that of a peer. */
function isGivenUp(view: View): boolean {
  const errors = [view, ...(view.children ?? [])].flatMap(({ run, tokens }) => [run.error, ...tokens.map(({ error }) => error)]);
  return errors.some((error) => error?.code === "internal_error" && error.message.includes("a bug of Curfew"));
}

function waitsOf({ run, waits_for = [] }: View): string {
  const waits = waits_for.map((wait) => {
    if (wait.for === "signal" && wait.run_id !== run.id) return `a called run waits for a signal at "${wait.node_id}", and signals reach the run itself only: test that workflow alone, and mock the node that calls it`;
    const list = wait.for === "decision" ? "people" : "signals";
    const add = wait.add === undefined ? "" : `; add ${JSON.stringify(wait.add)} to its ${list}`;
    return `it waits for a ${wait.for}${wait.node_id ? ` at "${wait.node_id}"` : ""}${add}`;
  });
  return waits.length === 0 ? "nothing will move it on" : waits.join("; ");
}

/** A failure with its shortest history. Its length is bounded by that of the first one, after whose end faults change nothing. */
function reported(engine: Engine, body: Record<string, unknown>, seed: number, first: Failure, plan: Plan): Error {
  const { faults } = plan;
  // What has nothing to do with the seed.
  if (first.cause instanceof UnknownName || (first.cause instanceof EngineError && first.cause.code === "no_mock")) return first.cause;
  let found = { failure: first, faults };
  const most = faults.events ?? 150;
  for (let events = 0; events < most; events += 1) {
    const fewer = { ...faults, events };
    const { answers } = call(engine, { op: "simulate_seeds", ...body, faults: fewer, first_seed: seed, seeds: 1 });
    const failure = failureOf(answers[0], plan);
    if (failure !== undefined) {
      found = { failure, faults: fewer };
      break;
    }
  }
  const { why, run, cause } = found.failure;
  const happened = run?.faults.map(({ at_ms, fault }) => `${fault} at ${momentOf(at_ms)}`) ?? [];
  const timeline = run?.timeline() ?? "";
  const lines = [
    // The message of a matcher has the timeline, too.
    `seed ${seed} fails: ${timeline === "" ? why : why.replace(timeline, "").trim()}`,
    ...(found.faults.events === undefined ? [] : [`Its shortest history has faults in the first ${found.faults.events} events: ${happened.join(", ") || "none"}.`]),
    ...(run === undefined ? [] : ["", timeline, ""]),
    `Repeat it: start(input, ${JSON.stringify({ seed, faults: found.faults, ...plan.more })}).finish()`,
  ];
  return new SeedFailure(lines.join("\n"), seed, found.faults, run, cause);
}
