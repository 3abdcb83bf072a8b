// A run in words: how it ended, what it returned, and what can be done now.
import type { Run } from "../client/index.ts";
import { statusPaint } from "./colours.ts";
import { formatShort } from "./durations.ts";
import type { Output } from "./output.ts";
import { escaped, escapedLines } from "./terminal_text.ts";

/** Longer outputs are cut for people; `--json` has them whole. */
const LINES_MAX = 40;

export function endLines(run: Run, output: Output): string[] {
  const status = statusPaint(run.status, output.colours)(escaped(run.status.replaceAll("_", " ")));
  return [`${escaped(run.id)}  ${status} after ${formatShort(run.duration_ms)}`, ...outcomeLines(run, output)];
}

/** The output of a completed run; why another one ended, and how it can go on. `isWhole`: the whole run is shown beside it. */
export function outcomeLines(run: Run, output: Output, { isWhole = false } = {}): string[] {
  const { red, dim } = output.colours;
  switch (run.status) {
    case "completed":
      return jsonLines(run.output, output.command(`run ${run.id} --json`), dim);
    case "failed":
    case "timed_out":
      return [
        ...(run.error === null ? [] : [`${red(escaped(run.error.code))}: ${escapedLines(run.error.message).join(" ")}`]),
        dim(`${isWhole ? "" : `what happened: ${output.command(`run ${run.id}`)}   `}go on: ${output.command(`retry ${run.id}`)}   from the start: ${output.command(`restart ${run.id}`)}`),
      ];
    case "cancelled":
      return run.reason === undefined ? [] : [`reason: ${escaped(run.reason)}`];
    default:
      return [];
  }
}

/** JSON on several lines. JSON itself escapes control characters below space; the others are escaped here. */
export function jsonLines(value: unknown, whole: string, dim: (text: string) => string): string[] {
  const lines = (JSON.stringify(value, null, 2) ?? "null").split("\n").map(escaped);
  if (lines.length <= LINES_MAX) return lines;
  return [...lines.slice(0, LINES_MAX), dim(`... ${lines.length - LINES_MAX} more lines: ${whole}`)];
}
