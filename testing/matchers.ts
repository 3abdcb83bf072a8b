// What a test says about a run: as matchers for `expect.extend` of Vitest, and as `expectRun` for any test runner. A failure shows the
// timeline of the run.
import { AssertionError } from "node:assert";
import { inspect, isDeepStrictEqual } from "node:util";
import type { RunStatus } from "../client/index.ts";
import { expectStatus } from "./known_names.ts";
import type { NodeOf, PlaceOf, WaitOf, WorkflowOf } from "./names.ts";
import { namesOf, SeenRun, waitNames } from "./run.ts";

/**
 * The matchers of a run, as `declare module "vitest"` adds them to `expect`. Names that its workflow does not have do not compile where
 * it is a constant, and are an `UnknownName` when the test runs.
 */
export interface RunMatchers<Run = any> {
  /** Its status is `completed`, and its output is this. */
  toHaveCompleted(output?: unknown): void;
  /** Its status is `failed`, and its error has this code. */
  toHaveFailed(code?: string): void;
  toHaveStatus(status: RunStatus): void;
  /** The run, or this node, or its compensation, did not finish in time. */
  toHaveTimedOut(node?: NodeOf<WorkflowOf<Run>> | `${NodeOf<WorkflowOf<Run>>}~compensate`): void;
  /** It visited these nodes in this order. Others may be in between. */
  toHaveVisited(nodes: readonly NodeOf<WorkflowOf<Run>>[]): void;
  /** It undid the work of these nodes in this order, and of no others. */
  toHaveCompensated(nodes: readonly NodeOf<WorkflowOf<Run>>[]): void;
  /** A gate is open at this node, or `timeout`, that of the run's limit; or the node waits for a signal, or for the signal with this name. */
  toWaitFor(name: WaitOf<WorkflowOf<Run>>): void;
  /** The node made so many calls, or at least one. Each attempt counts. */
  toHaveCalled(node: PlaceOf<WorkflowOf<Run>>, times?: number): void;
}

interface Verdict {
  pass: boolean;
  message: () => string;
}

type Matchers = { [Name in keyof RunMatchers]: (run: unknown, ...args: Parameters<RunMatchers[Name]>) => Verdict };

/** For `expect.extend(matchers)`. */
export const matchers: Matchers = {
  toHaveCompleted: (run, ...expected) =>
    judged(run, (run) => {
      const isCompleted = run.status === "completed";
      if (!isCompleted || expected.length === 0) return [isCompleted, "have completed", ended(run)];
      return [isDeepStrictEqual(run.output, expected[0]), `have completed with ${shown(expected[0])}`, ended(run)];
    }),
  toHaveFailed: (run, code) =>
    judged(run, (run) => [run.status === "failed" && (code === undefined || run.error?.code === code), `have failed${code === undefined ? "" : ` with ${code}`}`, ended(run)]),
  toHaveStatus: (run, status) =>
    judged(run, (run) => {
      expectStatus(status);
      return [run.status === status, `be ${status}`, ended(run)];
    }),
  toHaveTimedOut: (run, node) =>
    judged(run, (run) => {
      if (node === undefined) return [run.status === "timed_out", "have timed out", ended(run)];
      namesOf(run).expectLimit(node);
      const late = timedOut(run);
      return [late.includes(node), `have timed out at ${node}`, late.length === 0 ? "no node did" : `timed out: ${late.join(", ")}`];
    }),
  toHaveVisited: (run, nodes) =>
    judged(run, (run) => {
      expectList(nodes);
      nodes.forEach((node) => namesOf(run).expectNode(node));
      const visited = run.visited;
      let from = 0;
      const isInOrder = nodes.every((node) => (from = visited.indexOf(node, from) + 1) > 0);
      return [isInOrder, `have visited ${nodes.join(", ")}`, `it visited ${visited.join(", ") || "nothing"}`];
    }),
  toHaveCompensated: (run, nodes) =>
    judged(run, (run) => {
      expectList(nodes);
      nodes.forEach((node) => namesOf(run).expectCompensation(node));
      const expected = nodes.length === 0 ? "have compensated nothing" : `have compensated ${nodes.join(", ")}`;
      return [isDeepStrictEqual(run.compensated, [...nodes]), expected, `it compensated ${run.compensated.join(", ") || "nothing"}`];
    }),
  toWaitFor: (run, name) =>
    judged(run, (run) => {
      const names = waitNames(run);
      namesOf(run).expectWait(name, names);
      return [names.has(name), `wait for ${name}`, names.size === 0 ? `it waits for nothing: ${ended(run)}` : `it waits for ${[...names].join(", ")}`];
    }),
  toHaveCalled: (run, node, times) =>
    judged(run, (run) => {
      if (times !== undefined && !(Number.isSafeInteger(times) && times >= 0)) throw new TypeError(`${shown(times)} is no number of calls`);
      const made = run.callsOf(node).length;
      const expected = times === undefined ? `have called ${node}` : `have called ${node} ${counted(times)}`;
      return [times === undefined ? made > 0 : made === times, expected, `it made ${made === 0 ? "no call" : `${made} call${made === 1 ? "" : "s"}`} there`];
    }),
};

/** The matchers for any test runner: `expectRun(run).toHaveCompleted()`. They throw an `AssertionError`. */
export function expectRun<Run extends SeenRun>(run: Run): RunMatchers<Run> & { not: RunMatchers<Run> } {
  return { ...asserting(run, true), not: asserting(run, false) };
}

function asserting(run: SeenRun, isExpected: boolean): RunMatchers {
  const entries = Object.entries(matchers).map(([name, matcher]) => {
    const assertion = (...args: unknown[]): void => {
      const { pass, message } = (matcher as (run: SeenRun, ...args: unknown[]) => Verdict)(run, ...args);
      if (pass !== isExpected) throw new AssertionError({ message: message(), stackStartFn: assertion });
    };
    return [name, assertion];
  });
  return Object.fromEntries(entries) as unknown as RunMatchers;
}

/** `judge` says whether it is so, what was expected, and what was found instead. */
function judged(run: unknown, judge: (run: SeenRun) => [pass: boolean, expected: string, found: string]): Verdict {
  if (!(run instanceof SeenRun)) throw new TypeError(`a matcher of curfew/testing looks at a run, as \`start\` returns it, not at ${shown(run)}`);
  const [pass, expected, found] = judge(run);
  return { pass, message: () => `expected the run${pass ? " not" : ""} to ${expected}; ${found}\n\n${run.timeline()}\n` };
}

function expectList(nodes: unknown): void {
  if (!Array.isArray(nodes)) throw new TypeError(`${shown(nodes)} is no list of nodes; write ["..."]`);
}

/** Where a limit passed. */
function timedOut({ events, tokens }: SeenRun): string[] {
  const compensations = new Set(tokens.filter(({ compensation }) => compensation).map(({ id }) => id));
  const late = events.filter(({ kind, node_id }) => kind.endsWith("_timed_out") && node_id != null);
  return late.map(({ node_id, token_id }) => (token_id != null && compensations.has(token_id) ? `${node_id}~compensate` : node_id!));
}

function ended({ status, error, output }: SeenRun): string {
  if (status === "completed") return `it completed with ${shown(output)}`;
  return error === null ? `it is ${status.replaceAll("_", " ")}` : `it is ${status.replaceAll("_", " ")}, ${error.code}: ${error.message}`;
}

const counted = (times: number): string => (times === 1 ? "once" : `${times} times`);
const shown = (value: unknown): string => inspect(value, { depth: 4, breakLength: 120, maxStringLength: 200, maxArrayLength: 20 });
