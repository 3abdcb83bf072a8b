// A run in words: how it ended, what it returned, and what can be done now.
import type { Client, ResumeOptions, Run } from "../client/index.ts";
import { statusPaint } from "./colours.ts";
import { formatShort } from "./durations.ts";
import type { Output } from "./output.ts";
import { escaped, escapedLines, jsonText } from "./terminal_text.ts";

/** Longer outputs are cut for people; `--json` has them whole. */
const LINES_MAX = 40;

/** Which ways back an ended run has. Undefined if it needs none, or if they cannot be read: the API refuses what is not possible. */
export async function waysBack(run: Run, api: Client): Promise<ResumeOptions | undefined> {
  if (run.status !== "failed" && run.status !== "timed_out") return undefined;
  return api.resumeOptions(run.id).catch(() => undefined);
}

export function endLines(run: Run, ways: ResumeOptions | undefined, output: Output): string[] {
  const status = statusPaint(run.status, output.colours)(escaped(run.status.replaceAll("_", " ")));
  return [`${escaped(run.id)}  ${status} after ${formatShort(run.duration_ms)}`, ...outcomeLines(run, ways, output)];
}

/** The output of a completed run; why another one ended, and how it can go on. `isWhole`: the whole run is shown beside it. */
export function outcomeLines(run: Run, ways: ResumeOptions | undefined, output: Output, { isWhole = false } = {}): string[] {
  const { red, dim } = output.colours;
  switch (run.status) {
    case "completed":
      return jsonLines(run.output, output.command(`run ${run.id} --json`), dim);
    case "failed":
    case "timed_out": {
      const next = [
        ...(isWhole ? [] : [`what happened: ${output.command(`run ${run.id}`)}`]),
        ...(ways?.resumable === false ? [] : [`go on: ${output.command(`retry ${run.id}`)}`]),
        `from the start: ${output.command(`restart ${run.id}`)}`,
      ];
      return [...(run.error === null ? [] : [`${red(escaped(run.error.code))}: ${escapedLines(run.error.message).join(" ")}`]), dim(next.join("   "))];
    }
    case "cancelled":
      return run.reason === undefined ? [] : [`reason: ${escaped(run.reason)}`];
    default:
      return [];
  }
}

/** JSON on several lines. */
export function jsonLines(value: unknown, whole: string, dim: (text: string) => string): string[] {
  const lines = jsonText(value, 2).split("\n");
  if (lines.length <= LINES_MAX) return lines;
  return [...lines.slice(0, LINES_MAX), dim(`... ${lines.length - LINES_MAX} more lines: ${whole}`)];
}
