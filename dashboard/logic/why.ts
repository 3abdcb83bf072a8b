// Why a deadline passed, as the record of a single timeout says it. Servers of an earlier build say nothing of it, and one of a later build
// may say more: every field may be absent.
import { count, duration, words } from "./words.ts";

export interface WhyAttempt {
  epoch?: number;
  queued_ms?: number | null;
  duration_ms?: number | null;
  ended?: string;
  child_run_id?: string;
}

export interface WhyBranch {
  index?: number;
  token_id?: string | null;
  node_id?: string | null;
  came_at?: number | null;
}

export interface TimeoutWhy {
  limit?: {
    layer?: string;
    source?: string;
    timeout_ms?: number | null;
    pointer?: string | null;
    document?: { kind?: string; id?: string } | null;
    preset?: string | null;
    reason?: string | null;
    extended_ms?: number;
  };
  outer?: { layer?: string; run_id?: string; passed_first?: boolean; left_ms?: number | null } | null;
  used?: {
    elapsed_ms?: number;
    stopped_ms?: number | null;
    queued_ms?: number;
    waited_ms?: number;
    attempts?: WhyAttempt[];
    attempts_left_out?: number;
    calls?: { step_ref?: string; status?: string; calls?: number; duration_ms?: number; backoff_ms?: number }[];
    reminders?: number | null;
    opened_at?: number | null;
    first_arrival_at?: number;
    branches?: number;
    arrived?: number;
    needed?: number;
    missing?: WhyBranch[];
    missing_left_out?: number;
    nodes?: { node_id?: string; duration_ms?: number }[];
  };
  usual?: { node_id?: string | null; samples?: number; p50_ms?: number | null; p99_ms?: number | null; source?: string | null; reason?: string | null };
  smallest_limit_ms?: number | null;
  more_than_ms?: number | null;
  smallest_limit_reason?: string;
  change?: readonly { op?: string; path?: string; value?: unknown }[] | null;
}

/** What a record says; undefined if it says nothing. */
export function whyOf(record: unknown): TimeoutWhy | undefined {
  const why = typeof record === "object" && record !== null ? (record as { why?: unknown }).why : undefined;
  return typeof why === "object" && why !== null && !Array.isArray(why) ? (why as TimeoutWhy) : undefined;
}

const LAYERS: Record<string, string> = {
  workflow: "the run",
  execution: "an attempt",
  call: "a call",
  join: "a join",
  gate: "a gate",
  wait: "a wait for a signal",
  callback: "a callback",
  heartbeat: "the silence of an executor",
};

const SOURCES: Record<string, string> = {
  preset: "the default of the preset",
  adaptive: "learnt from earlier runs of the node",
  start: "given by the start of the run",
  parent_budget: "what was left of the run that called it",
  calling_node: "the limit of the node that called the run",
  join_default: "the default of a join",
  gate_default: "the default of a gate",
  deployment: "set for the deployment",
  unknown: "from a place that is not known",
};

/** Which limit it was, and where its length comes from. */
export function limitSentence({ limit }: TimeoutWhy): string {
  if (!limit) return "";
  const layer = LAYERS[limit.layer ?? ""] ?? words(limit.layer ?? "something");
  const length = typeof limit.timeout_ms === "number" ? `The limit of ${layer} was ${duration(limit.timeout_ms)}` : `The limit of ${layer} passed`;
  const source = limit.source === undefined ? "" : (SOURCES[limit.source] ?? `written at the ${words(limit.source)}`);
  const preset = limit.preset ? ` ${limit.preset}` : "";
  const extended = limit.extended_ms ? `; ${duration(limit.extended_ms)} of it are extensions` : "";
  return `${length}${source && `, ${source}${preset}`}${extended}.`;
}

/** Whether the limit around it matters, in a sentence. */
export function outerSentence({ outer }: TimeoutWhy): string {
  if (!outer) return "";
  const whose = outer.layer === "parent" ? "the run that called it" : "the run";
  if (outer.passed_first) return `The limit of ${whose} passed first.`;
  return typeof outer.left_ms === "number" ? `The limit of ${whose} had ${duration(outer.left_ms)} left.` : "";
}

export interface UsedPart {
  name: string;
  ms: number;
  /** The style of the same span in the timeline. */
  className: string;
}

/** What used the time, without what took none. */
export function usedParts({ used }: TimeoutWhy): UsedPart[] {
  if (!used) return [];
  const attempts = list(used.attempts).reduce((sum, { duration_ms }) => sum + (duration_ms ?? 0), 0);
  const nodes = list(used.nodes).map(({ node_id, duration_ms }): UsedPart => ({ name: node_id ?? "", ms: duration_ms ?? 0, className: "span-attempt" }));
  const parts: UsedPart[] = [
    { name: "queued", ms: used.queued_ms ?? 0, className: "span-queued" },
    { name: "attempts", ms: attempts, className: "span-attempt" },
    { name: "waits before retries", ms: used.waited_ms ?? 0, className: "span-backoff" },
    ...nodes,
    { name: "clock stopped", ms: used.stopped_ms ?? 0, className: "span-waiting" },
  ];
  return parts.filter(({ ms }) => Number.isFinite(ms) && ms > 0);
}

/** The parts that used most of it, in a sentence. */
export function usedSentence(why: TimeoutWhy): string {
  const parts = usedParts(why).sort((a, b) => b.ms - a.ms);
  const more = parts.length > 3 ? ` and ${parts.length - 3} more` : "";
  return parts.length === 0 ? "" : `What used the time: ${parts.slice(0, 3).map(({ name, ms }) => `${name} ${duration(ms)}`).join(", ")}${more}.`;
}

/** A list, whatever is there. */
export const list = <Item>(value: Item[] | undefined | null): Item[] => (Array.isArray(value) ? value : []);

/** How far a join or a gate had come. */
export function progressSentence({ used }: TimeoutWhy): string {
  if (!used) return "";
  if (used.needed !== undefined) return `${used.arrived ?? 0} of ${count(used.branches ?? 0, "branch", "branches")} had arrived, ${used.needed} more ${used.needed === 1 ? "was" : "were"} needed.`;
  if (typeof used.reminders === "number") return `The gate had sent ${count(used.reminders, "reminder")}.`;
  return "";
}

/** What the node usually takes. */
export function usualSentence({ usual }: TimeoutWhy): string {
  if (!usual) return "";
  const node = usual.node_id ? usual.node_id : "it";
  if (typeof usual.p50_ms !== "number") return usual.reason ? `What ${node} usually takes is not known: ${usual.reason}.` : "";
  const about = usual.source === "metrics" ? "at most " : "";
  const p99 = typeof usual.p99_ms === "number" ? `, 99 of 100 in ${about}${duration(usual.p99_ms)}` : "";
  return `Usually half of the runs of ${node} are done in ${about}${duration(usual.p50_ms)}${p99} (${count(usual.samples ?? 0, "sample")}).`;
}

/** The limit with which it would have held. */
export function smallestSentence(why: TimeoutWhy): string {
  const reason = why.smallest_limit_reason ? `: ${why.smallest_limit_reason}` : "";
  if (typeof why.smallest_limit_ms === "number") return `A limit of ${duration(why.smallest_limit_ms)} would have held${reason}.`;
  return reason ? `Which limit would have held is not known${reason}.` : "";
}

/** The limit that would have held, as the address of a replay has it. Undefined where the document has no such limit yet. */
export const lengthToTry = ({ change, smallest_limit_ms }: TimeoutWhy): string | undefined => {
  const [only, ...others] = change ?? [];
  const isOne = only?.op === "replace" && only.path && others.length === 0;
  return isOne && typeof smallest_limit_ms === "number" ? `${only.path}=${smallest_limit_ms}` : undefined;
};
