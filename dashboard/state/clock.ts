// The current time as a signal. It ticks only while the page is visible.
import { signal } from "@preact/signals";
import { clockOffset } from "../logic/clock_offset.ts";

const OFFSET_NEWS_MS = 2_000;

let offsetMs = 0;

/** The time of the server, as far as its answers tell it: deadlines are moments of the server. */
export const currentTime = (): number => Date.now() + offsetMs;

/** Ticks once a second: for times in words. */
export const now = signal(currentTime());

/** Called with each answer. */
export function noteServerDate(date: string | null, askedAt: number, answeredAt: number): void {
  const offset = clockOffset(date, askedAt, answeredAt);
  // What is within the precision of the header is no news: times would jump to and fro.
  if (offset === undefined || Math.abs(offset - offsetMs) < OFFSET_NEWS_MS) return;
  offsetMs = offset;
  now.value = currentTime();
}

setInterval(() => {
  if (!document.hidden) now.value = currentTime();
}, 1_000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) now.value = currentTime();
});

export const prefersLessMotion = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
