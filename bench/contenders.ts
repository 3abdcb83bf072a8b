// What the bench compares, in one workerd: Curfew, the floor (the least that can be written by hand) and Cloudflare Workflows.
import { moduleWorker, startCurfew, type Curfew, type CurfewOptions } from "../tests/workerd/harness.ts";

/** One run. */
export interface Sample {
  /** From the first request to the response with the result, seen by the caller. */
  wallMs: number;
  /** From start to end inside the object. */
  insideMs: number;
  bill: Bill;
}

/** What Cloudflare would bill the object for. NaN where the platform does not report it. */
export interface Bill {
  rows_written: number;
  rows_read: number;
  object_requests: number;
  executor_calls: number;
}

export interface Work {
  /** In a chain. */
  nodes?: number;
  /** In parallel. */
  branches?: number;
  /** Workers between the object and the work. */
  hops?: number;
}

const paths = { floor: "/__floor", workflows: "/__workflows" };

const step = { type: "worker", worker: "step" } as const;
const hop = { type: "worker", worker: "hop" } as const;

export const start = (options: CurfewOptions = {}): Promise<Curfew> =>
  startCurfew({
    unchecked: true,
    ...options,
    // The same Worker does the work for every contender.
    services: { STEP: step.worker },
    extraWorkers: [
      moduleWorker("floor", "bench/workers/floor.mjs", {
        triggers: [{ type: "fetch", pattern: `*${paths.floor}*` }],
        env: { FLOOR: { type: "durable-object", worker: "floor", exportName: "FloorObject" }, STEP: step, HOP: hop },
        exports: { FloorObject: { type: "durable-object", storage: "sqlite" } },
      }),
      moduleWorker("workflows", "bench/workers/workflows.mjs", {
        triggers: [{ type: "fetch", pattern: `*${paths.workflows}*` }],
        env: {
          FLOW: { type: "workflow", name: "bench", worker: "workflows", exportName: "BenchWorkflow" },
          WAITING: { type: "durable-object", worker: "workflows", exportName: "Waiting" },
          STEP: step,
          HOP: hop,
        },
        exports: { BenchWorkflow: { type: "workflow", name: "bench" }, Waiting: { type: "durable-object", storage: "sqlite" } },
      }),
      moduleWorker("step", "bench/workers/step.mjs"),
      moduleWorker("hop", "bench/workers/hop.mjs", { env: { STEP: step } }),
      ...(options.extraWorkers ?? []),
    ],
  });

/**
 * One run of a stored workflow, started and awaited in one request like the other contenders' runs. It names its version, which is
 * the fastest start; with `newest` the catalogue is asked for the newest one. `tokens` is how many must have completed.
 */
export async function curfewRun(curfew: Curfew, workflowId: string, tokens: number, newest = false): Promise<Sample> {
  const startedAt = performance.now();
  const body = newest ? { input: {} } : { input: {}, version: 1 };
  const run = await curfew.api("POST", `/v1/workflows/${workflowId}/runs?wait_ms=30000`, body);
  const wallMs = performance.now() - startedAt;
  if (run.json?.status !== "completed") throw new Error(`the run did not complete: ${run.text.slice(0, 1_000)}`);
  if (run.json.counts.completed !== tokens) throw new Error(`not every node ran: ${JSON.stringify(run.json.counts)}`);
  return { wallMs, insideMs: run.json.duration_ms, bill: billOf(run.headers) };
}

export function billOf(headers: Headers): Bill {
  const entries = (headers.get("x-curfew-bill") ?? "").split(";").map((entry) => entry.split("="));
  const read = (name: keyof Bill): number => Number(entries.find(([key]) => key === name)?.[1] ?? Number.NaN);
  return {
    rows_written: read("rows_written"),
    rows_read: read("rows_read"),
    object_requests: read("object_requests"),
    executor_calls: read("executor_calls"),
  };
}

/** The same work by the floor, or by Cloudflare Workflows. */
export async function otherRun(curfew: Curfew, contender: "floor" | "workflows", work: Work): Promise<Sample> {
  const startedAt = performance.now();
  const query = `nodes=${work.nodes ?? 0}&branches=${work.branches ?? 0}&hops=${work.hops ?? 1}`;
  const response = await fetch(`${curfew.url}${paths[contender]}?${query}`, { signal: AbortSignal.timeout(120_000) });
  if (!response.ok) throw new Error(`${contender}: ${response.status} ${await response.text()}`);
  const { rowsWritten, rowsRead, insideMs } = (await response.json()) as { rowsWritten?: number; rowsRead?: number; insideMs: number };
  const wallMs = performance.now() - startedAt;
  const bill = {
    rows_written: rowsWritten ?? Number.NaN,
    rows_read: rowsRead ?? Number.NaN,
    object_requests: contender === "floor" ? 1 : Number.NaN,
    executor_calls: (work.nodes ?? 0) + (work.branches ?? 0),
  };
  return { wallMs, insideMs, bill };
}
