// What the bench measures, and small arithmetic and printing for it.
import type { Curfew } from "../tests/workerd/harness.ts";

/** What a run leaves for later (the index) must not fall into the time of whoever is measured next. */
const REST_MS = 150;

export interface Sample {
  /** From the first request to the answer that has the end, seen by the caller. */
  wallMs: number;
  /** From start to end inside the object. */
  insideMs: number;
  rowsWritten: number;
}

/** One run of a stored workflow, started and waited for in one request as the floor's are; `tokens`: how many must have completed for the run to count. */
export async function curfewRun(curfew: Curfew, workflowId: string, tokens: number, restMs = REST_MS): Promise<Sample> {
  const startedAt = performance.now();
  const run = await curfew.api("POST", `/v1/workflows/${workflowId}/runs?wait_ms=30000`, { input: {} });
  const wallMs = performance.now() - startedAt;
  if (run.json?.status !== "completed") throw new Error(`the run did not complete: ${run.text.slice(0, 1_000)}`);
  if (run.json.counts.completed !== tokens) throw new Error(`not every node ran: ${JSON.stringify(run.json.counts)}`);
  const rowsWritten = Number(run.headers.get("x-curfew-rows-written") ?? Number.NaN);
  await rest(restMs);
  return { wallMs, insideMs: run.json.duration_ms, rowsWritten };
}

/** The same work by the floor: `nodes` after one another or `branches` at once, each over so many Workers. */
export async function floorRun(
  floorUrl: string,
  work: "nodes" | "branches",
  count: number,
  hops = 1,
  restMs = REST_MS,
): Promise<Sample> {
  const startedAt = performance.now();
  const response = await fetch(`${floorUrl}?${work}=${count}&hops=${hops}`, { signal: AbortSignal.timeout(60_000) });
  if (!response.ok) throw new Error(`floor: ${response.status} ${await response.text()}`);
  const { rowsWritten, insideMs } = (await response.json()) as Sample;
  const wallMs = performance.now() - startedAt;
  await rest(restMs);
  return { wallMs, rowsWritten, insideMs };
}

const rest = (millis: number) => new Promise((done) => setTimeout(done, millis));

export const median = (samples: Sample[], field: keyof Sample): number => percentile(samples.map((sample) => sample[field]), 0.5);

export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export const rounded = (value: number, digits = 2): number => Number(value.toFixed(digits));

/** A table in plain text; the first row is its head. */
export function printTable(rows: (string | number)[][]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  for (const [index, row] of rows.entries()) {
    console.log(row.map((cell, column) => pad(String(cell), widths[column]!, column)).join("  "));
    if (index === 0) console.log(widths.map((width) => "-".repeat(width)).join("  "));
  }
}

const pad = (text: string, width: number, column: number): string => (column === 0 ? text.padEnd(width) : text.padStart(width));
