// Gates in the order in which they should be decided, and what happens without a decision.
import type { Gate, Run, Timeout, Token } from "../../client/index.ts";
import { pretty } from "./safe_text.ts";
import { isEnded } from "./statuses.ts";
import { count, duration, words } from "./words.ts";

/** The nearest deadline first; gates without one come last, the oldest first. */
export const byDeadline = (gates: readonly Gate[]): Gate[] =>
  [...gates].sort((a, b) => (a.timeout_at ?? Infinity) - (b.timeout_at ?? Infinity) || a.opened_at - b.opened_at);

/** Its own name on a page with gates of many runs. */
export const gateKey = (gate: Gate): string => `gate-${gate.run_id}-${gate.id}`;

type Json = Record<string, any>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** The question of a gate. One that Curfew opened after a failure has more than its text. */
export function promptOf({ prompt }: Gate): { text: string; more: unknown } {
  if (typeof prompt === "string") return { text: prompt, more: undefined };
  if (!isObject(prompt) || typeof prompt["text"] !== "string") return { text: pretty(prompt), more: undefined };
  const { text, ...more } = prompt;
  return { text, more: Object.keys(more).length > 0 ? more : undefined };
}

const WITHOUT: Record<string, string> = {
  fail: "the node fails",
  approve: "it counts as approved",
  reject: "it counts as rejected",
  cancel_all: "the run ends as timed out",
};

/** The whole run waits at it: its limit has passed, or a person was asked whether it goes on after its end. */
const isOfRun = ({ kind, node_id }: Gate): boolean => kind === "workflow_timeout" || (kind === "escalation" && !node_id);

/** What happens if no person decides in time. */
export function withoutDecision(gate: Gate, document: unknown): string {
  if (gate.timeout_at === null) return "Without a decision it waits on.";
  const source = isObject(document) ? document : {};
  const node = Array.isArray(source["nodes"]) ? source["nodes"].find((node: unknown) => isObject(node) && node["id"] === gate.node_id) : undefined;
  const policy = isOfRun(gate) ? (source["gate"]?.["on_timeout"] ?? "cancel_all") : gate.kind === "node" ? (node?.["gate"]?.["on_timeout"] ?? "fail") : "fail";
  const then = isOfRun(gate) && policy === "fail" ? "the run fails" : (WITHOUT[policy] ?? String(policy));
  return `Without a decision ${then} after ${duration(gate.timeout_at - gate.opened_at)}.`;
}

/** What a choice of a gate that Curfew itself has opened will do. */
export const choiceSentence = (gate: Gate, choice: string): string | undefined => (gate.kind === "escalation" && isOfRun(gate) ? AFTER_THE_END[choice] : CHOICES[gate.kind]?.[choice]);

const AFTER_THE_END: Record<string, string> = { retry: "retry: the run goes on from what failed", fail: "fail: the run fails, and can be retried" };

const CHOICES: Record<string, Record<string, string>> = {
  workflow_timeout: {
    extend: "extend: the clocks go on with so much more time, and calls that were under way keep their results",
    abort: "abort: the run ends as timed out; what it got done is its deliverable",
    fail: "fail: the run fails, and can be retried",
  },
  escalation: { retry: "retry: the node is tried again", fail: "fail: the node fails, and its failure routes are taken", skip: "skip: the node counts as completed, without a result" },
};

/** Who may not decide, where the gate says it: the one who started the run. `me` is the name of the reader. */
export function fourEyes(gate: Gate, document: unknown, startedBy: string | null | undefined, me: string | null | undefined): string | undefined {
  const nodes = isObject(document) && Array.isArray(document["nodes"]) ? document["nodes"] : [];
  if (!nodes.some((node: unknown) => isObject(node) && node["id"] === gate.node_id && node["gate"]?.["four_eyes"] === true)) return undefined;
  if (!startedBy) return "Who starts the run may not decide, and this run was started without a name: nobody can decide. Cancel it, and start it with a credential that has a name.";
  return startedBy === me ? "You have started the run: another person has to decide." : `Another person than ${startedBy} has to decide.`;
}

/** How long the run took, and where its tokens are. */
export function stateOf(run: Pick<Run, "duration_ms" | "timeout_ms" | "counts">): string {
  const tokens = Object.entries(run.counts).map(([status, value]) => `${(value ?? 0).toLocaleString("en")} ${words(status)}`);
  const limit = run.timeout_ms === null ? "" : `; its limit is ${duration(run.timeout_ms)}`;
  const total = Object.values(run.counts).reduce((sum: number, value) => sum + (value ?? 0), 0);
  return `It has taken ${duration(run.duration_ms)}${limit}.${tokens.length > 0 ? ` ${count(total, "token")}: ${tokens.join(", ")}.` : ""}`;
}

const NAMED = 10;

/** `a, b ×3 and 2 more` of the nodes at which tokens are. */
function nodesOf(tokens: readonly Token[]): string {
  const counts = new Map<string, number>();
  for (const { node_id } of tokens) counts.set(node_id, (counts.get(node_id) ?? 0) + 1);
  const names = [...counts].map(([node, count]) => (count === 1 ? node : `${node} ×${count}`));
  const more = names.length - NAMED;
  return names.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** What a run had got done, and what it was doing: sentences about its first tokens. */
export function doneSoFar(tokens: readonly Token[]): string[] {
  const done = tokens.filter(({ status }) => status === "completed");
  const live = tokens.filter(({ status }) => !isEnded(status));
  const sentences = [done.length === 0 ? "Nothing is done yet." : `Done so far: ${nodesOf(done)}.`];
  if (live.length > 0) sentences.push(`Under way: ${nodesOf(live)}.`);
  return sentences;
}

/** The record of the limit for which a gate was opened: the last one of the run's own limit. */
export const recordOf = (gate: Gate, records: readonly Timeout[]): Timeout | undefined =>
  records.findLast(({ timeout_event: { scope, due_at } }) => scope === "flow" && due_at <= gate.opened_at);
