// What watchers cost a run, and how soon they have an event. The run waits for a signal until its watchers are connected.
import type { Curfew } from "../tests/workerd/harness.ts";
import { until } from "../tests/workerd/poll.ts";
import { watch, type Watcher } from "../tests/workerd/watcher.ts";
import { chain } from "./documents.ts";
import { percentile, rounded } from "./figures.ts";

const NODES = 50;
const WATCHERS = 20;
/** Between two events of the run whose events are timed: as fast as it can go, it would measure how fast this program reads. */
const PACE_MS = 20;
const ROUNDS = Number(process.env["CURFEW_BENCH_LIVE_ROUNDS"] ?? 40);
const WARM_UPS = 5;
const PACED = 5;

export async function liveFigures(curfew: Curfew) {
  console.log(`${ROUNDS} chains of ${NODES} by turns with ${WATCHERS} watchers, with one and with none; ${PACED} paced ones with ${WATCHERS}`);
  const fast = waiting("bench-live", chain("direct", NODES));
  const paced = waiting("bench-live-paced", pacedChain());
  for (const document of [fast, paced]) await curfew.store(document);
  const took: Record<number, number[]> = { 0: [], 1: [], [WATCHERS]: [] };
  for (let round = 0; round < ROUNDS + WARM_UPS; round += 1) {
    for (const count of [0, 1, WATCHERS]) {
      const { insideMs } = await oneRun(curfew, fast.id, count);
      if (round >= WARM_UPS) took[count]!.push(insideMs);
    }
  }
  const late: number[] = [];
  for (let run = 0; run < PACED; run += 1) late.push(...(await oneRun(curfew, paced.id, WATCHERS)).latencies);
  const unwatched = typical(took[0]!);
  return {
    nodes: NODES,
    watchers: WATCHERS,
    chain_ms: rounded(unwatched),
    one_watcher_ratio: rounded(typical(took[1]!) / unwatched),
    all_watchers_ratio: rounded(typical(took[WATCHERS]!) / unwatched),
    late_p50_ms: percentile(late, 0.5),
    late_p99_ms: percentile(late, 0.99),
    late_max_ms: Math.max(...late),
  };
}

/** The mean without the fastest and slowest tenth: a chain takes few milliseconds, and a median of whole ones would be coarse. */
function typical(values: number[]): number {
  const tenth = Math.floor(values.length / 10);
  const middle = values.toSorted((a, b) => a - b).slice(tenth, values.length - tenth);
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}

type Document = { nodes: { id: string }[]; transitions: object[] };

/** Begins with a wait for the signal `go`. */
const waiting = (id: string, document: Document) => ({
  ...document,
  id,
  nodes: [{ id: "go", wait: { signal: "go" } }, ...document.nodes],
  transitions: [{ from_node_id: "go", to_node_id: document.nodes[0]!.id }, ...document.transitions],
});

/** The same number of nodes, each of which sleeps. */
function pacedChain(): Document {
  const ids = Array.from({ length: NODES }, (_, index) => `n${index}`);
  return {
    nodes: ids.map((id) => ({ id, wait: { sleep_ms: PACE_MS } })),
    transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
  };
}

/** How long the run took from the signal to its end, and how long each event took from its commit to each watcher. */
async function oneRun(curfew: Curfew, workflowId: string, watchers: number) {
  const id = await curfew.start(workflowId);
  await until("the wait", async () => (await curfew.run(id)).status === "waiting");
  const latencies: number[] = [];
  const watching = await Promise.all(Array.from({ length: watchers }, () => watch(curfew.url, id, "", {}, (sent) => latencies.push(Date.now() - sent.data.at))));
  const history = (await curfew.events(id)).length;
  await until("the history", () => watching.every((watcher: Watcher) => watcher.sent.length >= history));
  latencies.length = 0;
  const signalled = await curfew.api("POST", `/v1/runs/${id}/signals/go`, {});
  if (signalled.status !== 200) throw new Error(signalled.text);
  const run = await curfew.ended(id);
  if (run.status !== "completed") throw new Error(`the chain ended as ${run.status}`);
  await Promise.all(watching.map((watcher) => watcher.ended()));
  const [signal] = await curfew.events(id, "signal_received");
  return { insideMs: run.ended_at! - signal!.at, latencies };
}
