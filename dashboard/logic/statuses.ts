// What statuses look like. A status that this version does not know is shown as text, in the neutral look.

/** A colour of the design. Each is also a shape, so that no meaning hangs on colour alone. */
export type Tone = "active" | "waiting" | "stopped" | "good" | "bad" | "late" | "neutral";

export type Shape = "play" | "clock" | "pause" | "check" | "cross" | "undo" | "slash" | "dot" | "hourglass" | "person";

interface Look {
  tone: Tone;
  shape: Shape;
}

const LOOKS: Record<string, Look> = {
  running: { tone: "active", shape: "play" },
  // For a person, a time, a signal or another run.
  waiting: { tone: "waiting", shape: "clock" },
  paused: { tone: "stopped", shape: "pause" },
  compensating: { tone: "late", shape: "undo" },
  completed: { tone: "good", shape: "check" },
  failed: { tone: "bad", shape: "cross" },
  timed_out: { tone: "late", shape: "hourglass" },
  cancelled: { tone: "neutral", shape: "slash" },
  pending: { tone: "neutral", shape: "dot" },
  dispatched: { tone: "neutral", shape: "play" },
  executing: { tone: "active", shape: "play" },
  waiting_for_siblings: { tone: "waiting", shape: "clock" },
  waiting_for_subworkflow: { tone: "waiting", shape: "clock" },
  awaiting_human: { tone: "waiting", shape: "person" },
  suspended: { tone: "waiting", shape: "clock" },
  open: { tone: "bad", shape: "cross" },
  closed: { tone: "good", shape: "check" },
  half_open: { tone: "waiting", shape: "clock" },
  escalated: { tone: "bad", shape: "person" },
};

const UNKNOWN: Look = { tone: "neutral", shape: "dot" };

export const lookOf = (status: string): Look => (Object.hasOwn(LOOKS, status) ? LOOKS[status]! : UNKNOWN);

export const RUN_STATUSES = ["running", "waiting", "paused", "compensating", "completed", "failed", "timed_out", "cancelled"] as const;

const ENDS = new Set<string>(["completed", "failed", "timed_out", "cancelled"]);

/** Of runs and of tokens. */
export const isEnded = (status: string): boolean => ENDS.has(status);
