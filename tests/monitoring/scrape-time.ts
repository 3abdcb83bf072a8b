// How long a scrape takes when 10 000 runs of 40 workflows are folded. Prints figures, checks nothing.
import { startCurfew } from "../workerd/harness.ts";
import { until } from "../workerd/poll.ts";

const RUNS = 10_000;
const curfew = await startCurfew();
const queue = await curfew.miniflare.getQueueProducer<string>("INDEX_QUEUE", "curfew");
const histogram = (ms: number) => ({ counts: { 100: 2, 1000: 1 }, sum_ms: ms });
const began = Date.now();
for (let sent = 0; sent < RUNS; sent += 50) {
  const summaries = Array.from({ length: 50 }, (_, index) => {
    const id = `r-${sent + index}`;
    const nodes = Object.fromEntries(Array.from({ length: 8 }, (_, node) => [`n${node}`, histogram(node * 10)]));
    const metrics = { starts: 1, ends: { completed: 1 }, duration: histogram(100), nodes, rows_written: 21 };
    const parked = index === 0 ? { parked_since: 1000 + sent } : {};
    return { revision: 2, at: Date.now(), ...parked, metrics, summary: { id, workflow_id: `w${index % 40}`, version: 1, status: "completed", tags: [], started_at: 5, ended_at: 9 } };
  });
  await queue.send(JSON.stringify(summaries), { contentType: "text" });
}
const ends = async (): Promise<number> => Number(/workflow_executions_total\{status="completed"\} (\d+)/.exec((await curfew.api("GET", "/metrics")).text)?.[1]);
await until("the runs", async () => (await ends()) === RUNS, 300_000, 1_000);
const batches = curfew.logLines("index_saved");
console.log(`${RUNS} runs folded in ${Date.now() - began} ms, ${batches.length} batches, ${batches.reduce((all, { rows_written }) => all + rows_written, 0)} rows written in D1`);
const times: number[] = [];
let bill = "";
for (let n = 0; n < 50; n++) {
  const at = performance.now();
  const response = await curfew.api("GET", "/metrics");
  times.push(performance.now() - at);
  bill = `${response.headers.get("x-curfew-bill")}, ${response.text.length} bytes`;
}
times.sort((one, other) => one - other);
console.log(`a scrape: median ${times[25]!.toFixed(1)} ms, slowest ${times[49]!.toFixed(1)} ms; ${bill}`);
await curfew.dispose();
