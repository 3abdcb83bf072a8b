// What the timeline of a run draws: the spans of each token's time, the limits around them, and the time in which the clocks stood still.
import type { Run, RunEvent, Token } from "../../client/index.ts";
import { isEnded } from "./statuses.ts";

export type SpanKind = "queued" | "attempt" | "backoff" | "waiting" | "late";

export interface Span {
  kind: SpanKind;
  from: number;
  /** Undefined: it goes on. */
  to: number | undefined;
  /** The attempt that it belongs to. */
  epoch: number;
}

/** The time that an attempt was given. */
export interface Limit {
  from: number;
  to: number;
  epoch: number;
}

export interface Lane {
  spans: Span[];
  limits: Limit[];
  /** When the token ended; undefined while it is live. */
  end: number | undefined;
}

/** The events of each token, in their order. */
export function eventsByToken(events: readonly RunEvent[]): Map<string, RunEvent[]> {
  const found = new Map<string, RunEvent[]>();
  for (const event of events) {
    if (!event.token_id) continue;
    const list = found.get(event.token_id);
    if (list) list.push(event);
    else found.set(event.token_id, [event]);
  }
  return found;
}

/** The spans of a token. Its row has the last attempt only; earlier ones are in the events. */
export function laneOf(token: Token, events: readonly RunEvent[] = []): Lane {
  const isLive = !isEnded(token.status);
  const end = isLive ? undefined : (token.ended_at ?? events.at(-1)?.at ?? token.started_at ?? token.created_at);
  const spans: Span[] = [];
  const limits: Limit[] = [];
  let kind: SpanKind = "queued";
  let from = token.created_at;
  let epoch = 0;
  const close = (to: number): void => {
    if (to > from) spans.push({ kind, from, to, epoch });
    from = Math.max(from, to);
  };

  for (const event of events) {
    if (event.kind === "token_dispatched") {
      close(event.at);
      epoch = event.epoch ?? epoch + 1;
      const startedAt = epoch === token.epoch ? token.started_at : null;
      kind = "queued";
      if (startedAt !== null && startedAt > event.at) close(startedAt);
      if (epoch !== token.epoch || startedAt !== null) {
        kind = "attempt";
        if (epoch !== token.epoch && token.timeout_ms !== null) limits.push({ from: event.at, to: event.at + token.timeout_ms, epoch });
      }
    } else if (event.kind === "token_retried" || (event.kind === "token_timed_out" && event.policy_applied === "retry") || event.kind === "attempt_reaped") {
      if (kind === "attempt" || kind === "queued") close(event.at);
      kind = event.delay_ms ? "backoff" : "queued";
    }
  }

  // A token that has no task waits: for a person, a time, a signal, a sub-workflow. Inline tasks have no event of a dispatch.
  const hasTask = token.lane !== null;
  if (epoch === 0 && token.started_at !== null) {
    close(token.started_at);
    kind = hasTask ? "attempt" : "waiting";
    epoch = token.epoch;
  }
  // Its call was cut, and no new attempt has begun: after the limit of a run the clocks stand still.
  if (token.status === "pending" && kind === "attempt" && token.timeout_ms !== null) {
    close(from + token.timeout_ms);
    kind = "queued";
  }
  if (WAITS.has(token.status)) {
    if (token.status === "waiting_for_siblings" && token.ended_at !== null) close(token.ended_at);
    kind = "waiting";
  }
  if (end === undefined || end > from) spans.push({ kind, from, to: end, epoch });
  // What took no time is still there to be seen.
  else if (spans.length === 0) spans.push({ kind: "attempt", from, to: end, epoch });
  if (token.timeout_at !== null) limits.push({ from: token.started_at ?? token.dispatched_at ?? token.created_at, to: token.timeout_at, epoch: token.epoch });
  return { spans: withLate(spans, token), limits, end };
}

/** A lane with the time that the calls of the last attempt waited between each other. */
export function withBackoffs(lane: Lane, { epoch, steps, started_at }: Pick<Token, "epoch" | "steps" | "started_at">): Lane {
  // Of a later version steps may be anything: the lane is drawn without them.
  if (started_at === null || !Array.isArray(steps) || !steps.some((step) => step?.retries?.length)) return lane;
  const waits: { from: number; to: number }[] = [];
  let begun = started_at;
  for (const { duration_ms, retries, started_at: at } of steps) {
    if (at !== undefined) begun = at;
    for (const { after_ms, delay_ms } of retries ?? []) if (after_ms !== undefined) waits.push({ from: begun + after_ms, to: begun + after_ms + delay_ms });
    begun += duration_ms;
  }
  const spans = lane.spans.flatMap((span): Span[] => {
    // Steps that an earlier attempt had finished are among them: what does not lie inside is not drawn.
    const inside = span.kind === "attempt" && span.epoch === epoch ? waits.filter(({ from, to }) => from >= span.from && to <= (span.to ?? Infinity)) : [];
    let from = span.from;
    const parts = inside.flatMap((wait): Span[] => {
      const before: Span = { ...span, from, to: wait.from };
      from = wait.to;
      return [before, { ...span, kind: "backoff", from: wait.from, to: wait.to }];
    });
    return [...parts, { ...span, from }];
  });
  return { ...lane, spans };
}

const WAITS = new Set<string>(["waiting_for_siblings", "waiting_for_subworkflow", "awaiting_human", "suspended"]);

/** The part of the last attempt that was after its deadline. */
function withLate(spans: Span[], { timeout_at, epoch }: Token): Span[] {
  if (timeout_at === null) return spans;
  return spans.flatMap((span) => {
    const isOver = span.epoch === epoch && span.to !== undefined && span.to > timeout_at && (span.kind === "attempt" || span.kind === "waiting");
    if (!isOver) return [span];
    const late: Span = { ...span, kind: "late", from: Math.max(span.from, timeout_at) };
    return span.from < timeout_at ? [{ ...span, to: timeout_at }, late] : [late];
  });
}

/** The span that has the end of the token; what was late of it is drawn apart. */
export const endOf = (spans: readonly Span[]): Span | undefined => spans.findLast(({ kind }) => kind !== "late");

/** A time in which the clocks of the run stood still. */
export interface Stop {
  from: number;
  to: number | undefined;
  why: string;
}

/** Pauses, from the events. */
export function pausesOf(events: readonly RunEvent[]): Stop[] {
  const stops: Stop[] = [];
  for (const event of events) {
    if (event.kind === "run_paused") {
      if (stops.at(-1)?.to === undefined && stops.length > 0) continue;
      stops.push({ from: event.at, to: undefined, why: PAUSES[event.cause ?? ""] ?? `paused: ${event.cause ?? "unknown"}` });
    } else if (event.kind === "run_resumed" || event.kind === "run_completed" || event.kind === "run_failed" || event.kind === "run_timed_out" || event.kind === "run_cancelled") {
      const last = stops.at(-1);
      if (!last || last.to !== undefined) continue;
      // A limit stops the clocks at the limit itself, however late it was noticed.
      if (event.paused_ms !== undefined) last.from = Math.min(last.from, event.at - event.paused_ms);
      last.to = event.at;
    }
  }
  return stops;
}

const PAUSES: Record<string, string> = {
  person: "paused by a person",
  workflow_timeout: "the limit of the run passed: it waits for a person",
  escalation: "a failure was escalated: it waits for a person",
  parent: "paused with the run that called it",
};

const STOPS_A_TOKEN = new Set<string>(["gate_opened", "subworkflow_paused"]);
const MOVES_A_TOKEN = new Set<string>(["gate_decided", "gate_timed_out", "subworkflow_resumed", "subworkflow_ended"]);

/** The times in which every live token stood at a gate, itself or in the run that it called: then the clock of the run's limit is stopped. */
export function gateStopsOf(tokens: readonly Token[], events: readonly RunEvent[]): Stop[] {
  const atGate = new Map<string, { from: number; to: number | undefined }[]>();
  for (const event of events) {
    if (!event.token_id) continue;
    if (STOPS_A_TOKEN.has(event.kind)) atGate.set(event.token_id, [...(atGate.get(event.token_id) ?? []), { from: event.at, to: undefined }]);
    if (MOVES_A_TOKEN.has(event.kind)) {
      const open = atGate.get(event.token_id)?.at(-1);
      if (open) open.to ??= event.at;
    }
  }
  if (atGate.size === 0) return [];
  const changes: { at: number; live: number; waiting: number }[] = [];
  for (const token of tokens) {
    const end = isEnded(token.status) ? (token.ended_at ?? token.created_at) : Infinity;
    changes.push({ at: token.created_at, live: 1, waiting: 0 }, { at: end, live: -1, waiting: 0 });
    for (const { from, to } of atGate.get(token.id) ?? []) changes.push({ at: from, live: 0, waiting: 1 }, { at: Math.min(to ?? Infinity, end), live: 0, waiting: -1 });
  }
  changes.sort((a, b) => a.at - b.at);
  const stops: Stop[] = [];
  let live = 0;
  let waiting = 0;
  let since: number | undefined;
  for (let i = 0; i < changes.length; i += 1) {
    const { at } = changes[i]!;
    live += changes[i]!.live;
    waiting += changes[i]!.waiting;
    if (changes[i + 1]?.at === at) continue;
    const isStopped = live > 0 && waiting === live;
    if (isStopped) since ??= at;
    else if (since !== undefined) {
      if (at > since) stops.push({ from: since, to: at === Infinity ? undefined : at, why: "every token waits for a person: the clock of the run stands still" });
      since = undefined;
    }
  }
  return stops;
}

/** When a live attempt began to be late: not while its clock stands still. */
export function lateSince(timeoutAt: number | null, stops: readonly Stop[], now: number): number | undefined {
  if (timeoutAt === null || now <= timeoutAt) return undefined;
  // Alarms come a moment after the deadline.
  const isStopped = stops.some(({ from, to }) => to === undefined && from <= timeoutAt + 1_000);
  return isStopped ? undefined : timeoutAt;
}

export interface Domain {
  from: number;
  to: number;
}

/** The part of time that is shown at first: all work, and the limit where the work would still be seen beside it. */
export function domainOf(run: Pick<Run, "started_at" | "ended_at" | "timeout_at">, ends: readonly number[], now: number, wanted: "auto" | "limit" | "work" = "auto"): Domain {
  const from = run.started_at;
  const latest = ends.reduce((most, end) => Math.max(most, end), run.ended_at ?? now);
  const work = Math.max(latest - from, 1);
  const limit = run.timeout_at === null ? 0 : run.timeout_at - from;
  const hasLimit = wanted === "limit" || (wanted === "auto" && limit < work * 8);
  const length = Math.max(work * (run.ended_at === null ? 1.25 : 1.02), hasLimit ? limit * 1.04 : 0, 10);
  return { from: from - length * 0.005, to: from + length };
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1.5e4, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6];

/** Moments for the scale, counted from the start of the run: at most about `most` of them. */
export function ticksOf(domain: Domain, start: number, most: number): number[] {
  const length = domain.to - domain.from;
  const step = STEPS.find((step) => length / step <= most) ?? Math.ceil(length / most / 2592e6) * 2592e6;
  const ticks: number[] = [];
  for (let at = start + Math.ceil((domain.from - start) / step) * step; at <= domain.to; at += step) ticks.push(at);
  return ticks;
}

/** A domain around a fixed point. */
export function zoomed({ from, to }: Domain, factor: number, around: number): Domain {
  const length = Math.min(Math.max((to - from) * factor, 5), 400 * 864e5);
  const share = (around - from) / (to - from);
  return { from: around - length * share, to: around + length * (1 - share) };
}

export const shifted = ({ from, to }: Domain, share: number): Domain => ({ from: from + (to - from) * share, to: to + (to - from) * share });
