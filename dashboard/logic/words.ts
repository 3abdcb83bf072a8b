// Times and durations in words, for people.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const two = (value: number): string => String(value).padStart(2, "0");

/** `840 ms`, `12.3 s`, `4m 12s`, `1h 05m`, `3d 4h`. Never more than two units. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "unknown";
  const value = Math.abs(ms);
  const sign = ms < 0 ? "-" : "";
  if (value < SECOND) return `${sign}${Math.round(value)} ms`;
  // 59.95 s would be rounded to 60.0 s.
  if (value < 10 * SECOND) return `${sign}${(Math.floor(value / 100) / 10).toFixed(1)} s`;
  if (value < MINUTE) return `${sign}${Math.floor(value / SECOND)} s`;
  if (value < HOUR) return `${sign}${Math.floor(value / MINUTE)}m ${two(Math.floor((value % MINUTE) / SECOND))}s`;
  if (value < DAY) return `${sign}${Math.floor(value / HOUR)}h ${two(Math.floor((value % HOUR) / MINUTE))}m`;
  return `${sign}${Math.floor(value / DAY)}d ${Math.floor((value % DAY) / HOUR)}h`;
}

/** `4m 12s left`, or `3.0 s over`. */
export const timeLeft = (dueAt: number, now: number): string => (dueAt >= now ? `${duration(dueAt - now)} left` : `${duration(now - dueAt)} over`);

/** `4m 12s ago`, or `in 4m 12s`. */
export function ago(at: number, now: number): string {
  const passed = now - at;
  if (Math.abs(passed) < SECOND) return "now";
  return passed > 0 ? `${duration(passed)} ago` : `in ${duration(-passed)}`;
}

/** The moment in the local time zone, with milliseconds; the date only if it is not that of `now`. */
export function moment(at: number, now = at): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return new Date(now).toDateString() === date.toDateString() && now !== at ? time : `${day} ${time}`;
}

/** The time zone of moments here, as `UTC+01:00`. */
export function zone(at: number): string {
  const minutes = -new Date(at).getTimezoneOffset();
  if (Number.isNaN(minutes)) return "";
  const length = Math.abs(minutes);
  return `UTC${minutes < 0 ? "-" : "+"}${two(Math.floor(length / 60))}:${two(length % 60)}`;
}

const UNITS: Record<string, number> = { ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/** The milliseconds of `90s`, `1h30m`, `1.5h`, `2d`. Undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const compact = text.replace(/\s+/g, "").toLowerCase();
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(compact)) return undefined;
  let total = 0;
  for (const [, value, unit] of compact.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) total += Number(value) * (UNITS[unit!] ?? 0);
  return Math.round(total);
}

/** `token_timed_out` as `token timed out`. Any text is taken: a later version of the API may have more names. */
export const words = (name: string): string => name.replaceAll("_", " ");

/** `1 token`, `3 tokens`. */
export const count = (value: number, one: string, many = `${one}s`): string => `${value.toLocaleString("en")} ${value === 1 ? one : many}`;

/** `512 B`, `12.3 KiB`, `1.0 MiB`. */
export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  return value < 1024 * 1024 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / 1024 / 1024).toFixed(1)} MiB`;
}
