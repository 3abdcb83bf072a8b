// Durations in Go's format, as the API reads and prints them, and moments. People may also write days, which the API does not know.

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `1h30m` or `2d`, or a sentence on what is wrong with it. */
export function parseDuration(text: string): number | string {
  if (/^\d+$/.test(text)) return `"${text}" has no unit; write ${text}s, ${text}m, ${text}h or ${text}d`;
  if (!/^(?:(?:\d+(?:\.\d+)?)(?:ms|s|m|h|d))+$/.test(text)) return `"${text.slice(0, 40)}" is no duration; write for example 500ms, 30s, 1h30m or 2d`;
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) total += Number(number) * UNITS[unit!]!;
  return total > 1e15 ? `"${text.slice(0, 40)}" is too long` : Math.round(total);
}

/** `5m0s`, `1.5s`, `250ms`. */
export function formatDuration(millis: number): string {
  const whole = Math.max(0, Math.round(millis));
  if (whole === 0) return "0s";
  if (whole < 1_000) return `${whole}ms`;
  const [hours, minutes, seconds] = [Math.floor(whole / 3_600_000), Math.floor(whole / 60_000) % 60, Math.floor(whole / 1_000) % 60];
  const fraction = whole % 1_000 === 0 ? "" : `.${String(whole % 1_000).padStart(3, "0")}`.replace(/0+$/, "");
  if (hours > 0) return `${hours}h${minutes}m${seconds}${fraction}s`;
  return minutes > 0 ? `${minutes}m${seconds}${fraction}s` : `${seconds}${fraction}s`;
}

/** As long as people read it: tenths of a second below ten seconds, whole seconds above. */
export function formatShort(millis: number): string {
  if (millis < 1_000) return formatDuration(millis);
  return formatDuration(millis < 10_000 ? Math.floor(millis / 100) * 100 : Math.floor(millis / 1_000) * 1_000);
}

/** What is left of a deadline. It counts down, so a part of a second counts as a second. */
export function formatLeft(millis: number): string {
  if (millis <= 0) return "0s";
  return formatDuration(millis < 1_000 ? Math.ceil(millis / 100) * 100 : Math.ceil(millis / 1_000) * 1_000);
}

/** Unix milliseconds of `2026-11-16T09:30:00Z`, of a day, of Unix milliseconds, or of a duration before `now`; else what is wrong. */
export function parseMoment(text: string, now: number): number | string {
  if (/^\d{12,15}$/.test(text)) return Number(text);
  const ago = parseDuration(text);
  if (typeof ago === "number") return Math.max(0, now - ago);
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(at)) return `"${text.slice(0, 40)}" is no moment; write 2026-11-16T09:30:00Z, 2026-11-16, Unix milliseconds, or 2h or 7d ago`;
  return at;
}

/** Local time, without the day where it is the day of `now`. */
export function formatMoment(at: number, now: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const [moment, today] = [new Date(at), new Date(now)];
  if (Number.isNaN(moment.getTime())) return String(at);
  const time = `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
  if (moment.toDateString() === today.toDateString()) return time;
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ${time}`;
}
