// The screen of `watch` as a function of what is known and of the time: lines that fit the terminal, however many tokens there are.
import type { Run } from "../../client/types.ts";
import { statusPaint, type Colours } from "../colours.ts";
import { formatLeft, formatShort } from "../durations.ts";
import type { Output } from "../output.ts";
import { table, type Cell } from "../table.ts";
import { cut, escaped } from "../terminal_text.ts";
import { countsText, leftOf, leftText, rowsOf, type Row } from "./rows.ts";
import { ENDED, type WatchState } from "./state.ts";

const COLUMNS = [
  { title: "NODE", isFlexible: true },
  { title: "STATUS", isFlexible: true },
  { title: "TIME" },
  { title: "", isOmittedIfEmpty: true },
  { title: "PROGRESS", isFlexible: true },
];
/** Gates that are shown, each with its command. */
const GATES_SHOWN = 3;
/** Without live tokens the ended ones have the whole screen; with them at least so many lines. */
const ENDED_SHOWN_LEAST = 3;

/**
 * At most `height` lines of at most `width` columns. `now` is our clock.
 * A frame has no line for the cursor: the caller keeps one.
 */
export function frame(state: WatchState, width: number, height: number, now: number, output: Pick<Output, "colours" | "command">): string[] {
  const { colours } = output;
  const serverNow = now + state.clockAheadMs;
  const head = [...header(state.run, width, serverNow, colours), ...gateLines(state, width, serverNow, output)].slice(0, Math.max(1, height));
  const room = height - head.length;
  // A blank line, the titles and one row, or nothing.
  if (room < 3) return head;
  const rows = chosen(rowsOf(state, serverNow), room - 2);
  if (rows.length === 0) return head;
  return [...head, "", ...table(COLUMNS, rows.map((row) => cells(row, colours)), width, colours.bold)];
}

function header(run: Run, width: number, now: number, colours: Colours): string[] {
  const duration = formatShort(ENDED.has(run.status) ? run.duration_ms : now - run.started_at);
  // The end of the line is what a narrow terminal cuts.
  const parts = [duration, limitText(run, now), `${run.workflow_id} v${run.version}`, run.attempt > 1 ? `attempt ${run.attempt}` : ""];
  const status = escaped(run.status.replaceAll("_", " "));
  const rest = parts.filter((part) => part !== "").map(escaped).join("  ");
  const name = escaped(run.id);
  // Cut before it is coloured: the three parts share one line.
  const shown = cut(`${name}  ${status}  ${rest}`, width);
  const paintedStatus = statusPaint(run.status, colours)(status);
  const first = shown.startsWith(`${name}  ${status}  `) ? `${colours.bold(name)}  ${paintedStatus}  ${shown.slice(name.length + status.length + 4)}` : shown;
  const error = run.error === null ? [] : [colours.red(cut(escaped(`${run.error.code}: ${run.error.message}`), width))];
  return [first, ...error];
}

function limitText(run: Run, now: number): string {
  if (ENDED.has(run.status)) return "";
  const deadline = run.deadlines.find(({ kind }) => kind === (run.status === "compensating" ? "compensation" : "workflow"));
  const paused = run.paused_by === undefined || run.paused_by.length === 0 ? "" : `  paused by ${run.paused_by.join(", ").replaceAll("_", " ")}`;
  if (deadline === undefined) return run.timeout_ms === null ? `no limit${paused}` : paused.trim();
  const left = leftOf(deadline);
  const limit = run.timeout_ms === null ? "" : ` of ${formatShort(run.timeout_ms)}`;
  return `${formatLeft(left.leftMs(now))} left${limit}${left.isStopped ? ", stopped" : ""}${paused}`;
}

function gateLines(state: WatchState, width: number, now: number, { colours, command }: Pick<Output, "colours" | "command">): string[] {
  const gates = [...state.gates.values()];
  const lines = gates.slice(0, GATES_SHOWN).flatMap((gate) => {
    const deadline = state.run.deadlines.find(({ gate_id }) => gate_id === gate.id);
    const left = leftText(deadline === undefined ? undefined : leftOf(deadline), now);
    const what = gate.nodeId === null ? "the run waits for a person" : `${gate.nodeId} waits for a person`;
    return [colours.yellow(cut(escaped(`${what}${left === "" ? "" : `, ${left}`}`), width)), cut(`  ${command(`decide ${state.run.id} ${gate.id}`)}`, width)];
  });
  const more = gates.length - GATES_SHOWN;
  return more > 0 ? [...lines, cut(`  ${more} more: ${command(`inbox --run ${state.run.id}`)}`, width)] : lines;
}

/** Ended rows first, as a history, then the live ones. What does not fit is counted in a row of its own. */
function chosen(rows: readonly Row[], room: number): Row[] {
  const live = rows.filter(({ isLive }) => isLive).sort((left, right) => left.at - right.at);
  const ended = rows.filter(({ isLive }) => !isLive).sort((left, right) => left.at - right.at);
  const endedRoom = Math.max(Math.min(ENDED_SHOWN_LEAST, Math.floor(room / 2)), room - live.length);
  const liveRoom = room - Math.min(ended.length, endedRoom);
  return [...newest(ended, endedRoom), ...nearestDeadlines(live, liveRoom)];
}

function newest(rows: readonly Row[], room: number): Row[] {
  if (rows.length <= room) return [...rows];
  if (room === 0) return [];
  const kept = room > 1 ? rows.slice(-(room - 1)) : [];
  return [remainder(rows.slice(0, rows.length - kept.length), "earlier"), ...kept];
}

function nearestDeadlines(rows: readonly Row[], room: number): Row[] {
  if (rows.length <= room) return [...rows];
  if (room === 0) return [];
  const byDeadline = [...rows].sort((left, right) => left.dueAt - right.dueAt || left.at - right.at);
  return [...byDeadline.slice(0, room - 1).sort((left, right) => left.at - right.at), remainder(byDeadline.slice(room - 1), "more")];
}

function remainder(rows: readonly Row[], label: string): Row {
  const counts = new Map<string, number>();
  for (const row of rows) for (const [status, count] of row.counts) counts.set(status, (counts.get(status) ?? 0) + count);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return { label: `${total} ${label}`, status: "", statusText: countsText(counts), attempt: "", time: "", detail: "", isLive: false, dueAt: Infinity, at: 0, counts };
}

function cells(row: Row, colours: Colours): (string | Cell)[] {
  return [row.label, { text: row.statusText, paint: statusPaint(row.status, colours) }, row.time, row.attempt, { text: row.detail, paint: colours.dim }];
}
