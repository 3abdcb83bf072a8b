// Short notices at the bottom of the page: what an action did, or why it was refused.
import { signal } from "@preact/signals";
import { messageOf } from "./session.ts";

export interface Notice {
  id: number;
  tone: "good" | "bad" | "neutral";
  text: string;
  /** Offers to take the action back. */
  undo?: (() => void) | undefined;
}

const SHOWN_MS = 6_000;
let last = 0;

export const notices = signal<Notice[]>([]);

export const dismiss = (id: number): void => {
  notices.value = notices.value.filter((notice) => notice.id !== id);
};

export function notify(tone: Notice["tone"], text: string, { undo, shownMs = SHOWN_MS }: { undo?: () => void; shownMs?: number } = {}): number {
  const id = (last += 1);
  notices.value = [...notices.value.slice(-4), { id, tone, text, undo }];
  // A refusal stays until it is read.
  if (tone !== "bad") setTimeout(() => dismiss(id), shownMs);
  return id;
}

/** Runs an action and says how it went. Returns undefined if it was refused. */
export async function attempt<T>(action: () => Promise<T>, done?: string | ((result: T) => string)): Promise<T | undefined> {
  try {
    const result = await action();
    if (done !== undefined) notify("good", typeof done === "string" ? done : done(result));
    return result;
  } catch (error) {
    notify("bad", messageOf(error));
    return undefined;
  }
}
