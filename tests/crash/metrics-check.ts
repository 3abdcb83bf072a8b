// At the end of the crash test the counters are exactly what the runs went through, as the API shows it.
import { parseExposition } from "../workerd/exposition.ts";
import { differences, expectedSamples } from "../workerd/metrics-truth.ts";
import { until } from "../workerd/poll.ts";
import { WAIT_MS, type Client } from "./client.ts";
import type { CurfewProcess } from "./process.ts";
import type { StartedRun } from "./run-checks.ts";

/** What is wrong with the metrics. A kill loses messages to the index, so every run publishes itself once more before. */
export async function checkMetrics(runs: StartedRun[], client: Client, instance: CurfewProcess): Promise<string[]> {
  const ids = runs.map(({ id }) => id);
  const children = await Promise.all(ids.map((id) => childrenOf(id, client)));
  const all = [...ids, ...children.flat()];
  await instance.probe(all);
  const expected = await expectedSamples(client, all);
  let wrong: string[] = [];
  const isTrue = async (): Promise<boolean> => {
    const { text } = await client.request("GET", "/metrics");
    wrong = differences(parseExposition(text).samples, expected);
    return wrong.length === 0;
  };
  await until("the metrics to be true", isTrue, WAIT_MS / 3, 300).catch(() => undefined);
  return wrong;
}

/** Compensations and end handlers may call workflows, too. */
async function childrenOf(id: string, client: Client): Promise<string[]> {
  const events = await client.events(id);
  const children = [...new Set(events.flatMap((event) => (event.kind === "subworkflow_started" ? [String(event["child_run_id"])] : [])))];
  return [...children, ...(await Promise.all(children.map((child) => childrenOf(child, client)))).flat()];
}
