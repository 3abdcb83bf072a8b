// What a run costs on Cloudflare's paid plan beyond what is included, from what was measured of it.
import type { Curfew } from "../tests/workerd/harness.ts";
import type { Figures } from "./compare.ts";

/** Dollars for a million of each. */
const PRICES = {
  rows_written: 1.0,
  rows_read: 0.001,
  object_requests: 0.15,
  seconds_awake: 1.6,
  worker_requests: 0.3,
  cpu_ms: 0.02,
  queue_operations: 0.4,
};

/** Cloudflare Workflows, a step. */
export const WORKFLOWS_STEP = 8.0;

/** A message is written, read and deleted. */
const OPERATIONS_A_MESSAGE = 3;

/**
 * Rows that D1 writes for a run of which the index hears once, when it has ended: the row, and each index that holds it. Those
 * with a condition hold only runs that have not.
 */
export async function indexRows(curfew: Curfew): Promise<number> {
  const database = await curfew.miniflare.getD1Database("DB", "curfew");
  const indexes = await database
    .prepare("SELECT count(*) AS count FROM sqlite_master WHERE type = 'index' AND tbl_name = 'runs' AND sql NOT LIKE '% WHERE %'")
    .first<{ count: number }>();
  return 1 + (indexes?.count ?? Number.NaN);
}

/**
 * For a million runs. Calls over service bindings are counted as requests, though Cloudflare does not bill them; the object is
 * billed from its start to its end.
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
