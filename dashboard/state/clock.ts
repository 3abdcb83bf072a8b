// The current time as a signal. It ticks only while the page is visible.
import { signal } from "@preact/signals";

/** Ticks once a second: for times in words. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1_000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) now.value = Date.now();
});

export const prefersLessMotion = (): boolean => matchMedia("(prefers-reduced-motion: reduce)").matches;
