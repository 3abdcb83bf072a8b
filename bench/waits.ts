// A thousand waits that are over at the same moment, and what a wait of 30 days costs.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Curfew } from "../tests/workerd/harness.ts";
import type { RunView } from "../tests/workerd/wire.ts";
import { billOf } from "./contenders.ts";
import { distribution, type Lateness } from "./lateness.ts";

export const WAITS = 1_000;
const WAIT_MS = 2_000;
const WARM_UPS = 1;
const ROUNDS = 5;
/** Between two starts of a thousand waits. Neither a start nor an end takes as long, so no two are under way at once. */
const STAGGER_MS = 350;

/** Branches that wait for a signal that never comes and are joined when their time is up, all at the same moment. */
const waitingBranches = {
  id: "bench-waits",
  timeout: "1m",
  on_timeout: "cancel_all",
  limits: { tokens_active: WAITS + 1 },
  nodes: [
    { id: "start" },
    { id: "rest", wait: { signal: "never", timeout_ms: WAIT_MS, on_timeout: "continue" } },
    { id: "done" },
  ],
  transitions: [
    { id: "each", from_node_id: "start", to_node_id: "rest", spawn_count: WAITS },
    { from_node_id: "rest", to_node_id: "done", synchronization: { sibling_group: "each", strategy: "all" } },
  ],
};

export async function atOnceFigures(curfew: Curfew) {
  await curfew.store(waitingBranches);
  const ended = await Promise.all(
    Array.from({ length: WARM_UPS + ROUNDS }, async (_, round) => {
      await sleep(round * STAGGER_MS);
      const id = await curfew.start(waitingBranches.id);
      const { json: run, text } = await curfew.api("GET", `/v1/runs/${id}?wait_ms=30000`);
      const heardAt = Date.now();
      if (run?.status !== "completed") throw new Error(`the waits did not end: ${text.slice(0, 1_000)}`);
      return { run: run as RunView, heardAt };
    }),
  );
  const late: Lateness[] = [];
  for (const { run, heardAt } of ended.slice(WARM_UPS)) {
    const waits = (await curfew.tokens(run.id)).filter((token) => token.node_id === "rest");
    // Not `timeout_at`: a token that has arrived at its join has no deadline any more.
    const startedAt = waits[0]?.started_at ?? Number.NaN;
    // A wake handles a hundred; the run is over with the last of them.
    const last = Math.max(...waits.map((token) => token.ended_at ?? Number.NaN));
    const together = waits.every((token) => token.started_at === startedAt) && last === run.ended_at;
    if (waits.length !== WAITS || !together) throw new Error(`${run.id}: the waits were not all due at one moment, and the end`);
    const dueAt = startedAt + WAIT_MS;
    // A hundred of them are one event, which is one moment to the object: its figure leaves out how long the last one took.
    late.push({ insideMs: run.ended_at! - dueAt, clientMs: heardAt - dueAt });
  }
  return { tokens: WAITS, rounds: ROUNDS, ...distribution(late) };
}

const resting = (name: string, wait: string) => ({
  id: `bench-rest-${name}`,
  timeout: null,
  nodes: [{ id: "rest", wait: { sleep: wait } }],
});

/**
 * Nobody waits 30 days for a figure. That nothing happens in them is seen for as long as a short wait takes, and follows for the
 * rest from the alarm; the rows of the end are those of the short wait, which ends in the same way.
 */
export async function waitingFigures(curfew: Curfew, directory: string) {
  const [month, moment] = [resting("month", "720h"), resting("moment", "1500ms")];
  for (const workflow of [month, moment]) await curfew.store(workflow);
  const read = async (id: string, waitMs = 0) => {
    const answer = await curfew.api("GET", `/v1/runs/${id}?wait_ms=${waitMs}`);
    const rows = billOf(answer.headers).rows_written;
    return { run: answer.json as RunView, rows };
  };
  const monthId = await curfew.start(month.id);
  const monthAsleep = await read(monthId);
  const momentId = await curfew.start(moment.id);
  const momentAsleep = await read(momentId);
  const momentEnded = await read(momentId, 30_000);
  const monthLater = await read(monthId);
  const statuses = [monthLater, momentAsleep, momentEnded].map(({ run }) => run.status);
  if (statuses.join() !== "running,running,completed") throw new Error(`the waits are ${statuses.join()}`);
  const [dueAt = Number.NaN, ...others] = monthLater.run.deadlines.map((deadline) => deadline.due_at);
  if (others.length > 0) throw new Error(`more than one deadline: ${JSON.stringify(monthLater.run.deadlines)}`);
  return {
    rows_until_it_waits: monthAsleep.rows,
    rows_while_it_waits: monthLater.rows - monthAsleep.rows,
    rows_from_wait_to_end: momentEnded.rows - momentAsleep.rows,
    alarm_before_the_end_ms: dueAt - (await alarmOf(curfew, monthId, directory)),
  };
}

/** When the run's object is woken next, from workerd's own table: no API shows an alarm. */
async function alarmOf(curfew: Curfew, runId: string, directory: string): Promise<number> {
  const runs = await curfew.miniflare.getDurableObjectNamespace("RUNS", "curfew");
  const database = new DatabaseSync(join(directory, "do", "curfew-RunObject", "metadata.sqlite"), { readOnly: true });
  try {
    // In nanoseconds, which a number does not hold.
    const select = database.prepare("SELECT scheduled_time / 1000000 AS at FROM _cf_ALARM WHERE actor_id = ?");
    return Number(select.get(runs.idFromName(runId).toString())?.["at"] ?? Number.NaN);
  } finally {
    database.close();
  }
}
