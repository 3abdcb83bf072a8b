// The rows of the screen: one for each token, one for all branches of a wide fan-out, one for what ended earlier.
import type { Run, Token } from "../../client/types.ts";
import { formatLeft, formatShort } from "../durations.ts";
import { escaped } from "../terminal_text.ts";
import { ENDED, type WatchState } from "./state.ts";

export interface Row {
  label: string;
  /** A status of a token, for its colour. */
  status: string;
  statusText: string;
  attempt: string;
  /** What is left until the deadline, or how long it took. */
  time: string;
  detail: string;
  isLive: boolean;
  /** The nearest deadline; Infinity without one. */
  dueAt: number;
  /** When it ended, or began. */
  at: number;
  /** Tokens by status, where the row stands for several. */
  counts: Map<string, number>;
}

/** More branches than this are one row. */
const BRANCHES_SHOWN = 3;

export function rowsOf(state: WatchState, now: number): Row[] {
  const groups = new Map<string, Token[]>();
  const single: Token[] = [];
  for (const token of state.tokens) {
    if (token.branch === null) single.push(token);
    else append(groups, `${token.branch.group} ${token.branch.instance} ${token.node_id}`, token);
  }
  const rows: Row[] = [];
  for (const tokens of groups.values()) {
    if (tokens.length > BRANCHES_SHOWN) rows.push(groupRow(tokens, state, now));
    else single.push(...tokens);
  }
  rows.push(...single.map((token) => tokenRow(token, state, now)), ...joinRows(state.run, now));
  return rows;
}

function append<Key, Value>(map: Map<Key, Value[]>, key: Key, value: Value): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

/** Behind the name of a node: a compensation has the node of the token whose work it undoes. */
export const undoes = ({ compensates }: Pick<Token, "compensates">): string => (compensates === undefined ? "" : ` undoes ${compensates}`);

function tokenRow(token: Token, state: WatchState, now: number): Row {
  const isLive = !ENDED.has(token.status);
  const deadline = isLive ? deadlineOf(token, state.run) : undefined;
  const branch = token.branch === null ? "" : `[${token.branch.index}]`;
  return {
    label: escaped(`${token.node_id}${branch}${undoes(token)}`),
    status: token.status,
    statusText: escaped(token.status.replaceAll("_", " ")),
    attempt: token.epoch > 1 ? `attempt ${token.epoch}` : "",
    time: isLive ? leftText(deadline, now) : tookText(token),
    detail: escaped(detailOf(token, state)),
    isLive,
    dueAt: deadline?.dueAt ?? Infinity,
    at: (isLive ? token.created_at : token.ended_at) ?? token.created_at,
    counts: new Map([[token.status, 1]]),
  };
}

function groupRow(tokens: readonly Token[], state: WatchState, now: number): Row {
  const counts = new Map<string, number>();
  for (const { status } of tokens) counts.set(status, (counts.get(status) ?? 0) + 1);
  const live = tokens.filter(({ status }) => !ENDED.has(status));
  const deadlines = live.map((token) => deadlineOf(token, state.run)).filter((deadline) => deadline !== undefined);
  const first = deadlines.reduce<Left | undefined>((least, one) => (least === undefined || one.leftMs(now) < least.leftMs(now) ? one : least), undefined);
  const total = tokens[0]!.branch!.total;
  const worst = ["executing", "dispatched", "pending", "awaiting_human", "failed", "timed_out"].find((status) => counts.has(status));
  // A branch that waits for the others has done its part.
  const ended = tokens.length - live.filter(({ status }) => status !== "waiting_for_siblings").length;
  const begin = tokens.reduce((least, { created_at }) => Math.min(least, created_at), Infinity);
  const end = tokens.reduce((most, { ended_at }) => Math.max(most, ended_at ?? 0), 0);
  return {
    label: `${escaped(tokens[0]!.node_id)} x${total}`,
    status: worst ?? tokens[0]!.status,
    statusText: countsText(counts),
    attempt: "",
    time: live.length > 0 ? leftText(first, now) : formatShort(end - begin),
    detail: live.length > 0 ? `${bar(ended / total)} ${ended}/${total}` : "",
    isLive: live.length > 0,
    dueAt: first?.dueAt ?? Infinity,
    at: live.length > 0 ? begin : end,
    counts,
  };
}

/** A join that waits has a deadline of its own, which belongs to no token. */
function joinRows(run: Run, now: number): Row[] {
  return run.deadlines
    .filter(({ kind, token_id }) => kind === "synchronization" && token_id === undefined)
    .map((deadline) => ({
      label: escaped(`join ${deadline.node_id ?? ""}`),
      status: "waiting_for_siblings",
      statusText: "waiting for siblings",
      attempt: "",
      time: leftText(leftOf(deadline), now),
      detail: "",
      isLive: true,
      dueAt: deadline.due_at ?? Infinity,
      at: now,
      counts: new Map(),
    }));
}

export interface Left {
  /** Infinity while the clock is stopped. */
  dueAt: number;
  isStopped: boolean;
  leftMs(now: number): number;
}

type Deadline = Run["deadlines"][number];

export function leftOf({ due_at, remaining_ms }: Pick<Deadline, "due_at" | "remaining_ms">): Left {
  const isStopped = due_at === undefined;
  return { dueAt: due_at ?? Infinity, isStopped, leftMs: (now) => (isStopped ? (remaining_ms ?? 0) : due_at - now) };
}

function deadlineOf(token: Token, run: Run): Left | undefined {
  const listed = run.deadlines.find(({ token_id }) => token_id === token.id);
  if (listed !== undefined) return leftOf(listed);
  return token.timeout_at === null ? undefined : leftOf({ due_at: token.timeout_at });
}

export function leftText(deadline: Left | undefined, now: number): string {
  if (deadline === undefined) return "";
  return `${formatLeft(deadline.leftMs(now))} left${deadline.isStopped ? ", stopped" : ""}`;
}

function tookText(token: Token): string {
  return token.ended_at === null ? "" : formatShort(token.ended_at - (token.started_at ?? token.created_at));
}

function detailOf(token: Token, state: WatchState): string {
  if (token.error !== null) return token.error.message;
  if (ENDED.has(token.status)) return token.reason ?? "";
  const progress = state.progress.get(token.id) ?? token.progress;
  if (progress === undefined || token.status !== "executing") return token.reason ?? "";
  const step = `step ${progress.step_index + 1}/${progress.steps_total} ${progress.step_ref}${progress.attempt > 1 ? `, call ${progress.attempt}` : ""}`;
  const partial = progress.partial.find(({ complete }) => !complete);
  return partial === undefined ? step : `${step}, ${bytesText(partial.bytes)}: ${partial.text.slice(-80)}`;
}

const bytesText = (bytes: number): string => (bytes < 1_024 ? `${bytes} B` : `${(bytes / 1_024).toFixed(1)} KiB`);

const BAR = 10;

function bar(part: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, part)) * BAR);
  return `[${"#".repeat(filled)}${"-".repeat(BAR - filled)}]`;
}

export function countsText(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([status, count]) => `${count} ${escaped(status.replaceAll("_", " "))}`).join(", ");
}
