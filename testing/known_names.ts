// The names in the documents of a kit, as they are known when a test runs. A test that asks for another name is wrong: that a node
// with such a name made no call would always be true.
import { inspect } from "node:util";
import { nearest } from "../cli/nearest.ts";
import type { RunStatus } from "../client/index.ts";

/** A test names what its documents do not have. */
export class UnknownName extends TypeError {
  override readonly name = "UnknownName";
}

interface Named {
  id?: unknown;
  nodes?: unknown;
  on_end?: unknown;
}
interface Node {
  id?: unknown;
  compensate?: unknown;
  wait?: { signal?: unknown } | null;
}

const LISTED_MAX = 40;

export class KnownNames {
  readonly #workflow: string;
  readonly #own: readonly Node[];
  readonly #called: readonly { workflow: string; nodes: readonly Node[] }[];
  readonly #handlers: number;

  /** Any value: the engine is what refuses documents. */
  constructor(workflow: unknown, called?: unknown) {
    const all = [workflow, ...listOf(called)].map((document) => (document ?? {}) as Named);
    this.#workflow = String(all[0]!.id);
    this.#own = listOf<Node>(all[0]!.nodes);
    this.#called = all.slice(1).map(({ id, nodes }) => ({ workflow: String(id), nodes: listOf<Node>(nodes) }));
    this.#handlers = Math.max(...all.map(({ on_end }) => listOf(on_end).length));
  }

  /** Where calls are made: a node, its compensation, or an end handler, of the workflow or of one that it calls. */
  expectPlace(name: string): void {
    const undone = this.#all().filter(({ compensate }) => compensate != null);
    const handlers = Array.from({ length: this.#handlers }, (_, index) => `on_end~${index + 1}`);
    this.#expect(name, "no place for calls", [...idsOf(this.#all()), ...idsOf(undone).map((id) => `${id}~compensate`), ...handlers]);
  }

  /** A node of the workflow itself: the path of a called run is its own. */
  expectNode(name: string): void {
    this.#expectOwn(name, "no node", this.#own);
  }

  /** A node of the workflow itself, or its compensation. */
  expectLimit(name: string): void {
    const undone = idsOf(this.#own.filter(({ compensate }) => compensate != null)).map((id) => ({ id: `${id}~compensate` }));
    this.#expectOwn(name, "no node", [...this.#own, ...undone]);
  }

  /** A node of the workflow itself that can be undone. */
  expectCompensation(name: string): void {
    this.#expectOwn(name, "no compensation of a node", this.#own.filter(({ compensate }) => compensate != null));
  }

  /** A gate, also of a called workflow. Any node may have one, because a failure can be escalated. */
  expectGate(name: string): void {
    this.#expect(name, "no gate", [...idsOf(this.#all()), "timeout"]);
  }

  /** What a run may wait for: a gate, or a signal. `seen` is known besides. */
  expectWait(name: string, seen: ReadonlySet<string>): void {
    const signals = this.#all().flatMap(({ wait }) => (typeof wait?.signal === "string" ? [wait.signal] : []));
    this.#expect(name, "no gate and no signal", [...idsOf(this.#all()), "timeout", ...signals, ...seen]);
  }

  #all(): readonly Node[] {
    return [...this.#own, ...this.#called.flatMap(({ nodes }) => nodes)];
  }

  #expectOwn(name: string, missing: string, nodes: readonly Node[]): void {
    const others = this.#called.filter(({ nodes }) => idsOf(nodes).includes(name)).map(({ workflow }) => `"${workflow}"`);
    const elsewhere = others.length === 0 ? "" : `; it is a node of ${others.join(", ")}, whose runs are in run.children`;
    this.#expect(name, missing, idsOf(nodes), elsewhere);
  }

  #expect(name: string, missing: string, names: readonly string[], more = ""): void {
    const known = [...new Set(names)];
    // What has no nodes is no workflow, and the engine says so.
    if (typeof name !== "string") throw new TypeError(`${inspect(name)} is no name of a node, a gate or a signal`);
    if (known.includes(name) || this.#own.length === 0) return;
    throw new UnknownName(`workflow "${this.#workflow}" has ${missing} "${name.slice(0, 100)}"${more}${suggestion(known, name)}`);
  }
}

const listOf = <Item>(value: unknown): readonly Item[] => (Array.isArray(value) ? value.filter((item) => typeof item === "object" && item !== null) : []);
const idsOf = (nodes: readonly Node[]): string[] => nodes.flatMap(({ id }) => (typeof id === "string" ? [id] : []));

function suggestion(known: readonly string[], name: string): string {
  const near = nearest(known, name);
  const listed = known.length > LISTED_MAX ? `${known.slice(0, LISTED_MAX).join(", ")} and ${known.length - LISTED_MAX} more` : known.join(", ") || "none";
  return `${near === undefined ? "." : `; did you mean "${near}"?`} Known are: ${listed}`;
}

const STATUSES: Record<RunStatus, true> = { running: true, waiting: true, paused: true, compensating: true, completed: true, failed: true, timed_out: true, cancelled: true };

export function expectStatus(status: string): void {
  if (typeof status !== "string") throw new TypeError(`${inspect(status)} is no status`);
  if (!Object.hasOwn(STATUSES, status)) throw new UnknownName(`no run is "${status}"${suggestion(Object.keys(STATUSES), status)}`);
}

/** Refuses options that have no effect: TypeScript sees them, other callers do not. */
export function expectOptions(what: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) throw new TypeError(`the options of ${what} are ${inspect(options, { depth: 0 })}; write an object with ${known.join(", ")}`);
  for (const name of Object.keys(options)) if (!known.includes(name)) throw new TypeError(`${what} has no option "${name}"${suggestion(known, name)}`);
}
