// Durations of tests: those of documents, and days. `"7d"` is easier to read than `"168h"`.
import { inspect } from "node:util";
import { parseDuration } from "../cli/durations.ts";

/** Milliseconds, or text: `500ms`, `30s`, `1h30m`, `7d`. */
export type Duration = number | string;

export function milliseconds(duration: Duration): number {
  if (typeof duration !== "number" && typeof duration !== "string") throw new TypeError(`${inspect(duration)} is no duration; write milliseconds, or text like "30s" or "7d"`);
  if (typeof duration === "number") {
    if (Number.isFinite(duration) && duration >= 0) return Math.round(duration);
    throw new TypeError(`${duration} is no duration; write milliseconds, or text like "30s" or "7d"`);
  }
  const parsed = parseDuration(duration.replaceAll(/(\d+(?:\.\d+)?)d/g, (_, days) => `${Number(days) * 24}h`));
  if (typeof parsed === "number") return parsed;
  throw new TypeError(`"${duration.slice(0, 40)}" is no duration; write for example 500ms, 30s, 1h30m or 7d`);
}
