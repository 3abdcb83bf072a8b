// Why a deadline of a run passed, in a few lines.
import type { Timeout } from "../client/index.ts";
import { formatDuration } from "./durations.ts";
import { escaped } from "./terminal_text.ts";

/** What its `limit.source` is called where it is no field of a document. */
const SOURCES: Record<string, string> = {
  start: "`timeout_ms` of the start",
  parent_budget: "what was left of the calling run",
  calling_node: "the limit of the calling node",
  join_default: "the default of a join",
  gate_default: "the default of a gate",
  deployment: "a variable of the deployment",
  adaptive: "an adaptive limit",
};

/** None of a record without a cause: an older Curfew does not say why. */
export function whyLines({ why, last_known_state: { node_id } }: Timeout): string[] {
  if (why === undefined) return [];
  const { limit, usual } = why;
  const named = limit.document === null ? "" : `${limit.document.kind}/${limit.document.id} `;
  const from = limit.pointer === null ? (SOURCES[limit.source] ?? limit.preset ?? limit.source) : `${named}${limit.pointer}`;
  const length = limit.timeout_ms === null ? "" : ` of ${formatDuration(limit.timeout_ms)}`;
  const at = node_id === undefined ? "" : ` at ${node_id}`;
  const lines = [`the ${limit.layer} limit${length}${at} passed: ${reasonedPlace(from, limit.reason)}`];
  if (usual.p50_ms !== null && usual.p99_ms !== null) {
    const about = usual.source === "metrics" ? "at most " : "";
    lines.push(`usually ${usual.node_id} takes ${about}${formatDuration(usual.p50_ms)}, and ${about}${formatDuration(usual.p99_ms)} in 99 of 100 runs`);
  }
  lines.push(
    why.smallest_limit_ms === null
      ? why.smallest_limit_reason
      : `it would have held with ${formatDuration(why.smallest_limit_ms)}: ${why.smallest_limit_reason}`,
  );
  if (why.change !== null) lines.push(`change: ${JSON.stringify(why.change)}`);
  return lines.map(escaped);
}

/** A reason may begin with the place. */
function reasonedPlace(place: string, reason: string | null): string {
  if (reason === null) return place;
  return reason.startsWith(place) ? reason : `${place} (${reason})`;
}
