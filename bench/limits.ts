// The limits of `npm run bench -- --check`, and which of them a measurement misses. No measuring here: a pure function of results.
import { rounded } from "./figures.ts";

/** When the limits were last compared with a whole measurement, on 2 cores. Limits leave room for the noise of such a machine. */
export const MEASURED_ON = "2026-11-18";

/** From an empty directory to a completed run of the npm package. The README promises it. */
export const FIRST_RUN_S = 60;

interface Late {
  late_p99_ms: number;
}

/** The part of the results that has limits. */
export interface Results {
  /** Times are medians. A ratio is Curfew's divided by the floor's. */
  workloads: { name: string; nodes: number; figures: Record<string, { p50_ms: number }>; ratios: Record<string, number>; dollars: Record<string, number> }[];
  throughput: { ratio: number; times_workflows: number };
  rows: { rows_per_node: number; rows_besides: number };
  dispatches_of_three_steps: number;
  loop: { nodes: readonly number[]; ratio: number };
  time: {
    floor: Late;
    run: Late;
    call: Late;
    floor_executor_gone: Late;
    call_executor_gone: Late;
    at_once: { tokens: number; client_late_max_ms: number };
    waiting: { rows_while_it_waits: number; alarm_before_the_end_ms: number };
  };
  credentials: { added_ms: number };
  live: { watchers: number; one_watcher_ratio: number; late_p99_ms: number };
  size: { gzip_kib: number; client_gzip_kib: number; engine_gzip_kib: number };
  first_run: { seconds: number };
}

export interface Limit {
  name: string;
  /** NaN where nothing was measured. */
  measured: number;
  limit: number;
  /** Whether `limit` is the least that is allowed, instead of the most. */
  atLeast: boolean;
}

export function limitsOf(results: Results): Limit[] {
  const { workloads, throughput, rows, loop, time, credentials, live, size, first_run } = results;
  const ratio = (name: string, contender = "curfew") => workloads.find((workload) => workload.name === name)?.ratios[contender] ?? Number.NaN;
  const later = (own: Late, floor: Late) => own.late_p99_ms - floor.late_p99_ms;
  return [
    atMost("chain of 50, lane direct, times the floor", ratio("chain of 50"), 1.2),
    atMost("chain of 50, lane inline, times the floor", ratio("chain of 50", "curfew, inline"), 0.35),
    atMost("chain of 50 that calls a Worker, times a floor with two hops", ratio("chain of 50, two hops"), 1.6),
    atMost("fan of 100, lane direct, times the floor", ratio("fan of 100"), 0.4),
    atMost("one step, times the floor", ratio("one step"), 1.7),
    atLeast("runs per second, times the floor's", throughput.ratio, 0.6),
    atLeast("times faster than Cloudflare Workflows, in the closest comparison", leastLead(results), 1),
    atMost("dollars for a million nodes of a run with several nodes", highestPrice(results), 4),
    atMost("dispatches of a task with three steps", results.dispatches_of_three_steps, 1),
    atMost("rows written per node", rows.rows_per_node, 2),
    atMost("rows written per run besides", rows.rows_besides, 7),
    atMost(`a node after the first ${loop.nodes[0]} of a loop, times one of those`, loop.ratio, 1.2),
    atMost("a run's timeout: p99, ms later than the floor's", later(time.run, time.floor), 15),
    atMost("a call's timeout: p99, ms later than the floor's", later(time.call, time.floor), 15),
    atMost("a call's timeout without an executor: p99, ms later than the floor's", later(time.call_executor_gone, time.floor_executor_gone), 15),
    atMost(`${time.at_once.tokens} waits due at once: slowest, ms until the client has the answer`, time.at_once.client_late_max_ms, 250),
    atMost("rows written while a run waits for 30 days", time.waiting.rows_while_it_waits, 0),
    atMost("ms from the alarm of that wait to its end", time.waiting.alarm_before_the_end_ms, 0),
    atMost("ms that checking a credential adds to a request", credentials.added_ms, 0.1),
    atMost("chain of 50 with one watcher, times one without", live.one_watcher_ratio, 1.1),
    atMost(`an event until it reaches each of ${live.watchers} watchers: p99, ms`, live.late_p99_ms, 20),
    // 1 466 before the live stream, progress, metrics, notifications and traces, 1 728 before analysis and simulation, 2 074 before what-if and
    // the causes of timeouts, 2 151 before the checks of constants and bounds by the clocks of runs.
    atMost("Worker, KiB gzipped", size.gzip_kib, 2240),
    atMost("TypeScript client, KiB gzipped", size.client_gzip_kib, 6),
    // 500 was the goal: docs/performance.md says what is in it. 772 before sessions of the test kit, what-if and the causes of timeouts.
    atMost("engine's own wasm, KiB gzipped", size.engine_gzip_kib, 960),
    atMost("the package: seconds from an empty directory to a completed run", first_run.seconds, FIRST_RUN_S),
  ];
}

const atMost = (name: string, measured: number, limit: number): Limit => ({ name, measured, limit, atLeast: false });
const atLeast = (name: string, measured: number, limit: number): Limit => ({ name, measured, limit, atLeast: true });

/** What was not measured is missed: a check that skips a limit must not pass. */
export const isMissed = ({ measured, limit, atLeast }: Limit): boolean => !(atLeast ? measured >= limit : measured <= limit);

/** One line for each missed limit. */
export const missedLimits = (results: Results): string[] =>
  limitsOf(results)
    .filter(isMissed)
    .map(({ name, measured, limit, atLeast }) => {
      const found = Number.isNaN(measured) ? "not measured" : String(measured);
      return `${name}: ${found}, limit ${atLeast ? "at least" : "at most"} ${limit}`;
    });

/** Against Curfew's slowest way to do each workload. */
function leastLead({ workloads, throughput }: Results): number {
  const leads = workloads.map(({ figures, ratios }) => {
    const own = Object.keys(ratios).map((contender) => figures[contender]!.p50_ms);
    return figures["workflows"]!.p50_ms / Math.max(...own);
  });
  return rounded(Math.min(...leads, throughput.times_workflows));
}

const highestPrice = ({ workloads }: Results): number =>
  Math.max(...workloads.filter(({ nodes }) => nodes > 1).flatMap(({ dollars }) => Object.values(dollars)));
