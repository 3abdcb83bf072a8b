// What runs cost on Cloudflare's paid plan: as text, and for a run that there is, from what the API shows of it. The API has no count of the
// rows that a run has written, so that is an estimate from its tokens and events. Prices are those of src/base/price.rs.
import type { Run, RunEvent, Token } from "../../client/index.ts";
import { eventsByToken, laneOf } from "./timeline.ts";

/** Dollars per million. */
const ROWS = 1;
const OBJECT_REQUESTS = 0.15;
const SECONDS_AWAKE = 1.6;
const WORKER_REQUESTS = 0.3;
const QUEUE_OPERATIONS = 0.4;
/** Of the index, for each run. */
const INDEX_ROWS = 5;
const OPERATIONS_A_MESSAGE = 3;

/** Rows of a run besides its tokens: it is created, saved and ended, with its alarm. */
const ROWS_OF_A_RUN = 5;
/** The requests that start a run, publish it and read its end. */
const REQUESTS_OF_A_RUN = 5;
/** The gate, the status of the run, the decision and its alarm. */
const ROWS_OF_A_GATE = 4;
/** What happens in a run that goes well is noted on rows that are written anyway. These are rows of their own. */
const OWN_ROWS = new Set<string>(["deadline_warning", "token_timed_out", "token_retried", "attempt_reaped", "run_paused", "run_resumed", "run_extended", "run_retried", "run_restarted", "late_result_discarded", "signal_received", "gate_reminded", "subworkflow_started", "subworkflow_ended", "compensation_started"]);

/** What a run used, as far as its tokens and events say it. */
export interface Usage {
  rows: number;
  requests: number;
  /** Attempts that went to an executor. */
  attempts: number;
  awakeMs: number;
  dollars: number;
}

export function usageOf(run: Pick<Run, "ended_at">, tokens: readonly Token[], events: readonly RunEvent[], now: number): Usage {
  let rows = ROWS_OF_A_RUN;
  let attempts = 0;
  let messages = 1;
  const spans: [from: number, to: number][] = [];
  const ofToken = eventsByToken(events);
  for (const token of tokens) {
    const isSent = token.lane === "direct" || token.lane === "queue";
    rows += isSent ? 2 * Math.max(token.epoch, 1) : 1;
    if (!isSent) continue;
    attempts += Math.max(token.epoch, 1);
    if (token.lane === "queue") messages += Math.max(token.epoch, 1);
    else {
      // A call that was cut at its limit may belong to a token that waits for days afterwards.
      const longest = token.timeout_ms ?? Infinity;
      for (const { kind, from, to } of laneOf(token, ofToken.get(token.id)).spans) if (kind === "attempt") spans.push([from, Math.min(to ?? run.ended_at ?? now, from + longest)]);
    }
  }
  let decisions = 0;
  for (const { kind } of events) {
    if (kind === "gate_opened") rows += ROWS_OF_A_GATE;
    else if (kind === "gate_decided") decisions += 1;
    else if (OWN_ROWS.has(kind)) rows += 1;
  }
  const requests = REQUESTS_OF_A_RUN + attempts + decisions;
  const awakeMs = covered(spans);
  const millionths =
    (rows + INDEX_ROWS) * ROWS + requests * OBJECT_REQUESTS + (awakeMs / 1_000) * SECONDS_AWAKE + (1 + attempts) * WORKER_REQUESTS + messages * OPERATIONS_A_MESSAGE * QUEUE_OPERATIONS;
  return { rows, requests, attempts, awakeMs, dollars: millionths / 1_000_000 };
}

/** The length of what spans cover together. */
function covered(spans: [from: number, to: number][]): number {
  let total = 0;
  let until = -Infinity;
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    total += Math.max(to - Math.max(from, until), 0);
    until = Math.max(until, to);
  }
  return total;
}

/** What a million runs cost, if one costs so many dollars: the price of one is too small to be read. */
export function priceOfMillion(dollars: number): string {
  if (!Number.isFinite(dollars)) return "unknown";
  const millions = dollars * 1_000_000;
  const digits = millions < 100 ? 2 : 0;
  return `$${millions.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}
