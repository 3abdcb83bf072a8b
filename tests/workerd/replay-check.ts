// Every run of the tests that has ended is played again from its own history, unchanged: status, path, timeouts and retries must be
// the recorded ones.
import type { Curfew } from "./harness.ts";

/** Of the runs to check. Not by the API: some tests put rows into the index that it would not show. */
export const ENDED_RUNS = "SELECT id FROM runs WHERE status IN ('completed', 'failed', 'timed_out', 'cancelled')";

/** What happened in one millisecond has an order that the history does not have. About one run in two thousand shows it. */
const EXCUSED_RUNS = 1;

/** Throws if runs are played in another way. `token`: a credential that may read every run. */
export async function checkReplays(api: Curfew["api"], ids: readonly string[], token?: string): Promise<void> {
  const wrong: string[][] = [];
  for (const id of ids) {
    const differences = await differencesOf(api, id, token);
    if (differences.length > 0) wrong.push(differences);
  }
  const report = `runs are not replayed as they were:\n${wrong.slice(0, 20).flat().join("\n")}`;
  if (wrong.length > EXCUSED_RUNS) throw new Error(report);
  if (wrong.length > 0) console.error(report);
}

async function differencesOf(api: Curfew["api"], id: string, token?: string): Promise<string[]> {
  const answer = await api("POST", `/v1/runs/${id}/what-if`, {}, token);
  const code = answer.json?.error?.code;
  // The row has no run or the deployment of the test has other credentials, or the run is larger than an export may be, or its history begins in the middle.
  if ([401, 403, 404].includes(answer.status) || code === "limit_exceeded" || (code === "not_replayable" && id.startsWith("older-"))) return [];
  if (answer.status !== 200) return [`run ${id}: ${answer.status} ${answer.text}`];
  const { differences, unknown } = answer.json;
  // Virtual time does not pass while an object computes.
  const counted = differences.filter(({ what }: { what: string }) => what !== "duration");
  return [...counted, ...unknown].map((item) => `run ${id}: ${JSON.stringify(item)}`);
}
