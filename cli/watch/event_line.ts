// An event as one line of text, for pipes and logs.
import type { WatchEvent } from "../../client/types.ts";
import { formatDuration, formatMoment } from "../durations.ts";
import { MOMENTS } from "../iso_times.ts";
import { inOneLine } from "../terminal_text.ts";

/** Shown at the beginning of the line, or of no use to a person. */
const PLACED = new Set(["seq", "at", "kind", "node_id", "token_id", "workflow_run_id", "partial"]);

/** `16:40:03 token_failed fetch t3 code=http_500 class=server_error`. Fields that a later version adds are shown, too. */
export function eventLine(event: WatchEvent, now: number): string {
  const fields: Record<string, unknown> = { ...event };
  const place = [fields["node_id"], fields["token_id"]].filter((part) => typeof part === "string");
  const rest = Object.entries(fields)
    .filter(([name, value]) => !PLACED.has(name) && value !== null && value !== undefined)
    .map(([name, value]) => fieldText(name, value, now));
  return [formatMoment(event.at, now), event.kind, ...place, ...rest].map(inOneLine).join(" ");
}

function fieldText(name: string, value: unknown, now: number): string {
  if (typeof value === "number" && name.endsWith("_ms")) return `${name.slice(0, -3)}=${formatDuration(value)}`;
  if (typeof value === "number" && MOMENTS.has(name)) return `${name}=${formatMoment(value, now)}`;
  const text = inOneLine(value);
  return /\s/.test(text) && typeof value === "string" ? `${name}=${JSON.stringify(value)}` : `${name}=${text}`;
}
