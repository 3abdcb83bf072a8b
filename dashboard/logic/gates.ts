// Gates in the order in which they should be decided, and what happens without a decision.
import type { Gate } from "../../client/index.ts";
import { duration } from "./words.ts";

/** The nearest deadline first; gates without one come last, the oldest first. */
export const byDeadline = (gates: readonly Gate[]): Gate[] =>
  [...gates].sort((a, b) => (a.timeout_at ?? Infinity) - (b.timeout_at ?? Infinity) || a.opened_at - b.opened_at);

type Json = Record<string, any>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

const WITHOUT: Record<string, string> = {
  fail: "the node fails",
  approve: "it counts as approved",
  reject: "it counts as rejected",
  cancel_all: "the run ends as timed out",
};

/** What happens if no person decides in time. */
export function withoutDecision(gate: Gate, document: unknown): string {
  if (gate.timeout_at === null) return "Without a decision it waits on.";
  const source = isObject(document) ? document : {};
  const node = Array.isArray(source["nodes"]) ? source["nodes"].find((node: unknown) => isObject(node) && node["id"] === gate.node_id) : undefined;
  const policy = gate.kind === "workflow_timeout" ? (source["gate"]?.["on_timeout"] ?? "cancel_all") : gate.kind === "node" ? (node?.["gate"]?.["on_timeout"] ?? "fail") : "fail";
  const then = gate.kind === "workflow_timeout" && policy === "fail" ? "the run fails" : (WITHOUT[policy] ?? String(policy));
  return `Without a decision ${then} after ${duration(gate.timeout_at - gate.opened_at)}.`;
}

/** What a choice of a gate that Curfew itself has opened will do. */
export const CHOICES: Record<string, Record<string, string>> = {
  workflow_timeout: {
    extend: "extend: the clocks go on with so much more time, and calls that were under way keep their results",
    abort: "abort: the run ends as timed out; what it got done is its deliverable",
    fail: "fail: the run fails, and can be retried",
  },
  escalation: { retry: "retry: the node is tried again", fail: "fail: the node fails, and its failure routes are taken", skip: "skip: the node counts as completed, without a result" },
};

/** Whether the one who started the run may not decide. */
export function needsFourEyes(gate: Gate, document: unknown): boolean {
  const nodes = isObject(document) && Array.isArray(document["nodes"]) ? document["nodes"] : [];
  return nodes.some((node: unknown) => isObject(node) && node["id"] === gate.node_id && node["gate"]?.["four_eyes"] === true);
}
