// A thousand waits that end at the same moment, and the cost of a wait of 30 days.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { Curfew } from "../tests/workerd/harness.ts";
import type { RunView } from "../tests/workerd/api-types.ts";
import { billOf } from "./contenders.ts";
import { distribution, type Lateness } from "./lateness.ts";

export const WAITS = 1_000;
const WAIT_MS = 2_000;
const WARM_UPS = 1;
const ROUNDS = 5;
/** Between two starts of a thousand waits. Starts and ends take less, so no two overlap. */
const STAGGER_MS = 350;

/** Branches that wait for a signal which never comes. They time out at the same moment and are joined. */
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
      const respondedAt = Date.now();
      if (run?.status !== "completed") throw new Error(`the waits did not end: ${text.slice(0, 1_000)}`);
      return { run: run as RunView, respondedAt };
    }),
  );
  const late: Lateness[] = [];
  for (const { run, respondedAt } of ended.slice(WARM_UPS)) {
    const waits = (await curfew.tokens(run.id)).filter((token) => token.node_id === "rest");
    // Not `timeout_at`: a token that has arrived at its join has no deadline.
    const startedAt = waits[0]?.started_at ?? Number.NaN;
    // One alarm handles a hundred tokens; the run ends with the last of them.
    const last = Math.max(...waits.map((token) => token.ended_at ?? Number.NaN));
    const endedTogether = waits.every((token) => token.started_at === startedAt) && last === run.ended_at;
    if (waits.length !== WAITS || !endedTogether) throw new Error(`${run.id}: not all waits were due at one moment, or the run did not end with them`);
    const dueAt = startedAt + WAIT_MS;
    // A hundred of them are one event with one timestamp: the figure of the object leaves out how long that event took.
    late.push({ insideMs: run.ended_at! - dueAt, clientMs: respondedAt - dueAt });
  }
  return { tokens: WAITS, rounds: ROUNDS, ...distribution(late) };
}

const resting = (name: string, wait: string) => ({
  id: `bench-rest-${name}`,
  timeout: null,
  nodes: [{ id: "rest", wait: { sleep: wait } }],
});

/**
 * The bench does not wait for 30 days. It sees that nothing is written while a short wait runs, and that the alarm is set for the
 * end: so nothing happens until then. The short wait ends in the same way and gives the rows of the end.
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

/** When the alarm of the run's object fires, from workerd's own table: no API shows it. */
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
