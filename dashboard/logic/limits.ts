// Where the limits of a run and its tokens come from, and what an extension changes.
import type { Run, Token } from "../../client/index.ts";
import { duration } from "./words.ts";

type Json = Record<string, any>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const find = (list: unknown, id: unknown): Json | undefined => (Array.isArray(list) ? list.find((item) => isObject(item) && item["id"] === id) : undefined);

/** A limit as a document has it: `timeout` in words, or `timeout_ms`. */
function written(holder: Json | undefined): string | undefined {
  const value = holder?.["timeout"] ?? holder?.["timeout_ms"];
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? duration(value) : String(value);
}

/** Where the limit of a token comes from, in a sentence. */
export function sourceOfLimit(token: Token, run: Run, document: unknown): string {
  if (token.timeout_ms === null) return token.timeout_reason ?? "It has no limit of its own: the limit of the run ends it.";
  const length = duration(token.timeout_ms);
  const capped = token.timeout_at !== null && token.timeout_at === run.timeout_at ? " The limit of the run passes at the same moment." : "";
  if (token.timeout_reason) return `Its limit is ${length}: ${token.timeout_reason}.${capped}`;
  const source = sourceIn(document, token.node_id);
  return `Its limit is ${length}, ${source ?? "from a document that the workflow refers to, or from the preset"}.${capped}`;
}

function sourceIn(document: unknown, nodeId: string): string | undefined {
  if (!isObject(document)) return undefined;
  const node = find(document["nodes"], nodeId);
  if (!node) return undefined;
  const own = written(node) ?? written(node["gate"]) ?? written(node["wait"]);
  if (own !== undefined) return `from the node (${own})`;
  const task = find(document["tasks"], node["task_id"]);
  const ofTask = written(task);
  if (ofTask !== undefined) return `from the task ${task!["id"]} (${ofTask})`;
  const step = Array.isArray(task?.["steps"]) && task["steps"].length === 1 ? task["steps"][0] : undefined;
  const action = isObject(step?.["action"]) ? step["action"] : find(document["actions"], step?.["action_id"] ?? node["action_id"]);
  const ofAction = written(action?.["execution"]);
  if (ofAction !== undefined) return `from the action ${action!["id"] ?? ""} (${ofAction})`.replace("  ", " ");
  return undefined;
}

/** Where the limit of the run comes from. */
export function sourceOfRunLimit(run: Run, document: unknown): string {
  if (run.timeout_ms === null) return "The run has no limit.";
  const own = isObject(document) ? written(document) : undefined;
  const length = duration(run.timeout_ms);
  if (run.parent) return `The limit of the run is ${length}: its own, that of the node that called it, or the rest of its parent's time.`;
  if (own === undefined) return `The limit of the run is ${length}: from the preset, the start or an extension.`;
  return `The limit of the run is ${length}; its workflow says ${own}.`;
}

/** A limit inside of the run that ends something before the new end of the run. */
export interface InnerLimit {
  kind: string;
  node_id: string | undefined;
  token_id: string | undefined;
  /** When it passes; while its clock stands still, if the clocks went on now. */
  at: number;
}

/** Deadlines other than the run's own that pass before `end`, the earliest first. An extension of the run does not move them. */
export function innerLimits(run: Pick<Run, "deadlines">, end: number, now: number): InnerLimit[] {
  return run.deadlines
    .filter(({ kind }) => kind !== "workflow")
    .map(({ kind, node_id, token_id, due_at, remaining_ms }) => ({ kind, node_id, token_id, at: due_at ?? now + (remaining_ms ?? 0) }))
    .filter(({ at }) => at < end)
    .sort((a, b) => a.at - b.at);
}

/** The end of the run's budget: where it stands still, as if its clock went on now. Undefined without a limit. */
export function runEnd(run: Pick<Run, "deadlines" | "timeout_at">, now: number): number | undefined {
  const own = run.deadlines.find(({ kind }) => kind === "workflow");
  if (own?.due_at !== undefined) return own.due_at;
  if (own?.remaining_ms !== undefined) return now + own.remaining_ms;
  return run.timeout_at ?? undefined;
}

/** Where the end of the budget is drawn. While the clock stands still it stays where it was when the clock stopped. */
export function budgetEnd(run: Pick<Run, "deadlines" | "timeout_at">, stops: readonly { from: number; to: number | undefined }[], now: number): number | undefined {
  const own = run.deadlines.find(({ kind }) => kind === "workflow");
  const stop = stops.find(({ to }) => to === undefined);
  return own?.remaining_ms !== undefined && stop ? stop.from + own.remaining_ms : runEnd(run, now);
}

/** The nearest deadline of the run, for a line in words. */
export function nearestDeadline(run: Pick<Run, "deadlines">): { kind: string; at: number; node_id: string | undefined } | undefined {
  let nearest: { kind: string; at: number; node_id: string | undefined } | undefined;
  for (const { kind, due_at, node_id } of run.deadlines) if (due_at !== undefined && (!nearest || due_at < nearest.at)) nearest = { kind, at: due_at, node_id };
  return nearest;
}
