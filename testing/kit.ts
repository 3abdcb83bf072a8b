// `curfewTest`: a workflow with the world around it, from which runs are started.
import { milliseconds } from "./durations.ts";
import { engine } from "./engine.ts";
import { expectOptions, KnownNames } from "./known_names.ts";
import type { Named } from "./names.ts";
import { TestRun, type SeedRun } from "./run.ts";
import { everySeed, type SeedOptions, type SeedSummary } from "./seeds.ts";
import type { Decision, KitOptions, Mock, Signal, StartOptions } from "./types.ts";

/** Tests `workflow` in virtual time, on the engine of production. No call is made, nothing is stored. */
export function curfewTest<const Workflow extends Named, const Child extends Named = never>(options: KitOptions<Workflow, Child>): Kit<Workflow, Child> {
  expectOptions("curfewTest", options, ["workflow", "documents", "mocks", "people", "signals", "start_at", "queue"] satisfies (keyof typeof options)[]);
  return new Kit<Workflow, Child>(options);
}

/** Never changes: each method returns a new kit, so that tests can share one. */
export class Kit<Workflow extends Named, Child extends Named = never> {
  readonly #options: KitOptions<Workflow, Child>;

  constructor(options: KitOptions<Workflow, Child>) {
    this.#options = options;
  }

  /** Answers for calls. They come before those that the kit has, so that a test can replace one. */
  mock(...mocks: Mock<Workflow | Child>[]): Kit<Workflow, Child> {
    return new Kit<Workflow, Child>({ ...this.#options, mocks: mocks.concat(this.#options.mocks ?? []) });
  }

  /** Decisions that people make when gates open. They come before those that the kit has. */
  people(...people: Decision<Workflow | Child>[]): Kit<Workflow, Child> {
    // The compiler does not see that both lists have the same type.
    const all: unknown[] = [...people, ...(this.#options.people ?? [])];
    return new Kit<Workflow, Child>({ ...this.#options, people: all as never });
  }

  /** Signals that arrive. */
  signals(...signals: Signal[]): Kit<Workflow, Child> {
    return new Kit<Workflow, Child>({ ...this.#options, signals: signals.concat(this.#options.signals ?? []) });
  }

  /** Starts a run. What takes no time has happened afterwards. */
  start(input: unknown = {}, options: StartOptions = {}): TestRun<Workflow | Child> {
    expectOptions("start", options, ["timeout", "seed", "faults", "by"] satisfies (keyof StartOptions)[]);
    const { timeout, seed, faults, by } = options;
    const body = this.#body({ input, timeout_ms: timeout === undefined ? undefined : milliseconds(timeout), seed, faults, by });
    return new TestRun(engine(), body, this.#names());
  }

  /**
   * Simulates one run for each of `count` seeds, with faults around it: crashes, lost and late messages, executors that vanish. Every
   * run must end, nothing that holds for any run may break, and `check` must not throw. Otherwise the first seed that fails is reported
   * with its shortest history.
   */
  everySeed(count: number, options: SeedOptions = {}, check?: (run: SeedRun<Workflow | Child>) => void): SeedSummary {
    expectOptions("everySeed", options, ["input", "timeout", "faults", "first_seed", "by"] satisfies (keyof SeedOptions)[]);
    if (check !== undefined && typeof check !== "function") throw new TypeError("the check of everySeed is a function, its third argument");
    const { input = {}, timeout, faults = {}, first_seed = 0, by } = options;
    const body = this.#body({ input, timeout_ms: timeout === undefined ? undefined : milliseconds(timeout), faults, by });
    return everySeed(engine(), body, { count, first_seed, faults, more: { ...(timeout === undefined ? {} : { timeout }), ...(by === undefined ? {} : { by }) }, names: this.#names(), check: check as ((run: SeedRun) => void) | undefined });
  }

  /** The names of the documents. What the world around a run names has to be there, too. */
  #names(): KnownNames {
    const { workflow, documents, mocks = [], people = [] } = this.#options;
    const names = new KnownNames(workflow, documents?.workflows);
    // What is no mock and no decision is refused by the engine.
    for (const mock of mocks) if (typeof mock?.node === "string") names.expectPlace(mock.node);
    for (const decision of people) if (typeof decision?.gate === "string") names.expectGate(decision.gate);
    return names;
  }

  /** The body of a simulation. */
  #body(more: Record<string, unknown>): Record<string, unknown> {
    const { workflow, documents, mocks = [], people = [], signals = [], start_at, queue } = this.#options;
    return {
      workflow,
      documents,
      mocks: mocks.map((mock) => inMilliseconds(mock, "after")).map(withRetryAfter),
      people: people.map((decision) => inMilliseconds(decision, "after")),
      signals: signals.map((signal) => inMilliseconds(signal, "at")),
      start_at,
      queue,
      ...more,
    };
  }
}

/** A copy whose duration the engine can read. */
function inMilliseconds<Entry extends object>(entry: Entry, field: string): Entry {
  const duration = (entry as Record<string, unknown> | null)?.[field];
  return typeof duration === "string" || typeof duration === "number" ? { ...entry, [field]: milliseconds(duration) } : entry;
}

function withRetryAfter<Entry extends { fail?: unknown }>(mock: Entry): Entry {
  return mock?.fail && typeof mock.fail === "object" ? { ...mock, fail: inMilliseconds(mock.fail, "retry_after") } : mock;
}
