// The price of a run on Cloudflare's paid plan, beyond the included amounts, from its measured usage.
import type { Curfew } from "../tests/workerd/harness.ts";
import type { Figures } from "./compare.ts";

/** Dollars per million. */
const PRICES = {
  rows_written: 1.0,
  rows_read: 0.001,
  object_requests: 0.15,
  seconds_awake: 1.6,
  worker_requests: 0.3,
  cpu_ms: 0.02,
  queue_operations: 0.4,
};

/** Dollars per million steps of Cloudflare Workflows. */
export const WORKFLOWS_STEP = 8.0;

/** A message is written, read and deleted. */
const OPERATIONS_A_MESSAGE = 3;

/**
 * Rows that D1 writes for a run that is published to the index once, at its end: the row and an entry in each index. Partial indexes
 * only hold runs that have not ended.
 */
export async function indexRows(curfew: Curfew): Promise<number> {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const indexes = await database
    .prepare("SELECT count(*) AS count FROM sqlite_master WHERE type = 'index' AND tbl_name = 'runs' AND sql NOT LIKE '% WHERE %'")
    .first<{ count: number }>();
  return 1 + (indexes?.count ?? Number.NaN);
}

/**
 * Dollars per million runs. Calls over service bindings are counted as requests, although Cloudflare does not bill them. The object
 * is billed from the start of the run to its end.
 */
export function dollars({ bill, inside_p50_ms: insideMs, cpu_ms: cpuMs }: Figures, d1Rows: number): number {
  return (
    (bill.rows_written + d1Rows) * PRICES.rows_written +
    bill.rows_read * PRICES.rows_read +
    bill.object_requests * PRICES.object_requests +
    (insideMs / 1_000) * PRICES.seconds_awake +
    (1 + bill.executor_calls) * PRICES.worker_requests +
    cpuMs * PRICES.cpu_ms +
    OPERATIONS_A_MESSAGE * PRICES.queue_operations
  );
}
