// A run as lines of text: when each token began, how long it took of its limit, its attempts, and what it waited for.
import type { Run, RunEvent, Token } from "../client/index.ts";
import { formatDuration } from "../cli/durations.ts";
import type { Call, View } from "./types.ts";

/** A run may have thousands of tokens. */
const LINES_MAX = 200;
/** The error of a run is why a test fails: only what no reader needs is cut. */
const MESSAGE_MAX = 1_000;
/** Of one token. */
const CALLS_MAX = 6;

/** How long after the start: `26h0m3s`. */
export const momentOf = (at_ms: number): string => formatDuration(at_ms);

export function timeline(view: View): string {
  const children = (view.children ?? []).flatMap((child) => ["", ...linesOf(child, view.calls, endOf(view))]);
  const lines = [...linesOf(view, view.calls, endOf(view)), ...waits(view), ...children];
  const more = lines.length - LINES_MAX;
  return (more > 0 ? [...lines.slice(0, LINES_MAX), `... and ${more} more lines`] : lines).map((line) => line.trimEnd()).join("\n");
}

interface Part {
  run: Run;
  tokens: Token[];
  events: RunEvent[];
}

/** The moment that the view shows. */
const endOf = ({ run, at_ms, virtual_ms }: View): number => run.ended_at ?? run.started_at + (at_ms ?? virtual_ms);

function linesOf({ run, tokens, events }: Part, calls: Call[], now: number): string[] {
  const rows = tokens.map((token) => {
    const took = formatDuration((token.ended_at ?? now) - token.created_at);
    const limit = token.timeout_ms === null ? "" : ` of ${formatDuration(token.timeout_ms)}`;
    return {
      cells: [momentOf(token.created_at - run.started_at), labelOf(token), token.status.replaceAll("_", " "), `${took}${limit}`, notesOf(token, events).join(", ")],
      calls: callsOf(run, token, calls),
    };
  });
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map(({ cells }) => cells[column]!.length)));
  const aligned = (cells: string[]) => cells.map((cell, column) => (column === 0 ? cell.padStart(widths[0]!) : cell.padEnd(widths[column] ?? 0))).join("  ");
  const lines = rows.flatMap(({ cells, calls }) => [`  ${aligned(cells)}`, ...calls.map((call) => `  ${" ".repeat(widths[0]!)}    ${call}`)]);
  return [titleOf(run, now), ...lines];
}

function titleOf(run: Run, now: number): string {
  const after = formatDuration((run.ended_at ?? now) - run.started_at);
  const limit = run.timeout_ms === null ? "no limit" : `limit ${formatDuration(run.timeout_ms)}`;
  const why = run.error === null ? "" : `: ${run.error.code}, ${inOneLine(run.error.message, MESSAGE_MAX)}`;
  return `${run.workflow_id}, ${limit}: ${run.status.replaceAll("_", " ")} ${run.ended_at === null ? "at" : "after"} ${after}${why}`;
}

function labelOf({ node_id, compensation, on_end, branch }: Token): string {
  const name = compensation ? `undo ${node_id}` : on_end ? "on_end" : node_id;
  return branch === null ? name : `${name} [${branch.index + 1} of ${branch.total}]`;
}

function notesOf(token: Token, events: RunEvent[]): string[] {
  const notes = token.epoch > 1 ? [`${token.epoch} attempts`] : [];
  for (const event of events.filter(({ token_id }) => token_id === token.id)) {
    const { kind, choice, by, name, delay_ms } = event as RunEvent & { choice?: string; name?: string; delay_ms?: number };
    if (kind === "gate_decided") notes.push(`decided: ${choice}${by ? ` by ${by}` : ""}`);
    if (kind === "gate_timed_out") notes.push("no decision in time");
    if (kind === "signal_received") notes.push(`signal ${name}`);
    // The status of its last attempt says it already.
    if (kind === "token_timed_out" && token.status !== "timed_out") notes.push("out of time");
    if (kind === "token_retried") notes.push(`again after ${formatDuration(delay_ms ?? 0)}`);
  }
  if (token.reason !== null) notes.push(token.reason.replaceAll("_", " "));
  if (token.error !== null) notes.push(token.error.code);
  return notes;
}

function callsOf(run: Run, token: Token, calls: Call[]): string[] {
  const own = calls.filter(({ run_id, token_id }) => run_id === run.id && token_id === token.id);
  const lines = own.slice(0, CALLS_MAX).map((call) => {
    const { method, url } = (call.request ?? {}) as { method?: string; url?: string };
    const what = method && url ? `${method} ${url}` : call.kind;
    const outcome = { open: "no answer yet", result: "answered", failed: "failed", timed_out: "no answer in time", aborted: "aborted" }[call.outcome];
    const took = call.duration_ms === null ? "" : ` after ${formatDuration(call.duration_ms)}`;
    return `${momentOf(call.at_ms)} ${inOneLine(what)}: ${outcome}${call.class ? `, ${call.class},` : ""}${took}`;
  });
  return own.length > CALLS_MAX ? [...lines, `... and ${own.length - CALLS_MAX} more calls`] : lines;
}

/** What an open run waits for. */
function waits({ run, gates = [], waits_for = [] }: View): string[] {
  const lines = gates.map(({ gate, choices, timeout_at }) => {
    const until = timeout_at === null ? "" : `, until ${momentOf(timeout_at - run.started_at)}`;
    return `  waits for a decision at ${gate} (${choices.join(", ")})${until}`;
  });
  const others = waits_for.filter((wait) => wait.for !== "decision" || gates.length === 0);
  return [...lines, ...others.map((wait) => `  waits for a ${wait.for}${wait.signal ? ` "${wait.signal}"` : ""} at ${wait.node_id ?? "the run"}`)];
}

function inOneLine(text: string, most = 120): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > most ? `${line.slice(0, most)}...` : line;
}
