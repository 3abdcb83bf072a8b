// The figures of `npm run bench`: Curfew, the floor and Cloudflare Workflows at the same work in one workerd. Prints tables,
// writes bench/results/latest.json. Ratios within one run are the figures; times are for orientation.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { root } from "../tests/workerd/harness.ts";
import { coldFigures, loopFigures } from "./alone.ts";
import { start } from "./contenders.ts";
import { indexRows } from "./cost.ts";
import { printTable, rounded, type Cell } from "./figures.ts";
import { sizeFigures } from "./size.ts";
import { alarmFloorWorkers, timeFigures, timeGoals, timeTable } from "./time.ts";
import { dispatchesOfThreeSteps, rowsOfANode, throughput, workloads, workloadTable, type Workload } from "./workloads.ts";

const curfew = await start({ extraWorkers: alarmFloorWorkers });
try {
  const results = {
    at: new Date().toISOString(),
    machine: { cores: cpus().length, model: cpus()[0]?.model, node: process.version },
    workloads: await workloads(await indexRows(curfew)),
    throughput: await throughput(),
    rows: await rowsOfANode(curfew),
    dispatches_of_three_steps: await dispatchesOfThreeSteps(curfew),
    loop: await loopFigures(curfew),
    cold: await coldFigures(),
    time: await timeFigures(curfew),
    size: await sizeFigures(),
  };
  printTable(workloadTable(results.workloads));
  console.log();
  const { throughput: many, loop, cold } = results;
  printTable([
    [`${many.runs} runs of ${many.steps} steps, ${many.inFlight} in flight`, "runs/s", "CPU ms/run", "KiB/run"],
    ...(["floor", "workflows", "curfew"] as const).map((who) => [
      who,
      many[who].runs_per_second,
      many[who].cpu_ms_per_run,
      many[who].resident_kib_per_run,
    ]),
  ]);
  console.log();
  printTable([
    ["alone", "", ""],
    [`loop of ${loop.nodes[1]} pure nodes, ms a node: the first ${loop.nodes[0]}, the others`, ...loop.ms_per_node],
    [`woken from the disk with one token, p50 and p95 ms`, cold.one.p50_ms, cold.one.p95_ms],
    [`woken from the disk with ${cold.tokens} tokens, p50 and p95 ms`, cold.many.p50_ms, cold.many.p95_ms],
    ["before the first request, ms", results.size.startup_active_ms, ""],
  ]);
  console.log();
  printTable(timeTable(results.time));
  console.log();
  printTable([["code, before compression", "KiB"], ...Object.entries(results.size.code_kib)]);
  console.log();

  const ratio = (name: string, who = "curfew"): number => find(results.workloads, name).ratios[who]!;
  const dearest = Math.max(...results.workloads.filter(({ nodes }) => nodes > 1).flatMap(({ dollars }) => Object.values(dollars)));
  printTable([
    ["goal", "measured", "limit"],
    ["chain of 50, lane direct, times the floor", ratio("chain of 50"), 1.1],
    ["chain of 50, lane inline, times the floor", ratio("chain of 50", "curfew, inline"), 0.2],
    ["chain of 50 that calls a Worker, times a floor with two hops", ratio("chain of 50, two hops"), 1.3],
    ["fan of 100, lane direct, times the floor", ratio("fan of 100"), 0.3],
    ["one step, times the floor", ratio("one step"), 1.2],
    ["runs a second, times the floor's (at least)", many.ratio, 1],
    ["times faster than Cloudflare Workflows, where it is least (at least)", leastAhead(results.workloads, many.times_workflows), 3],
    ["dollars for a million nodes of a run of several, at most", dearest, 4],
    ["dispatches of a task of three steps", results.dispatches_of_three_steps, 1],
    ["rows written for a node", results.rows.rows_per_node, 3],
    ["rows written for a run besides", results.rows.rows_besides, 10],
    [`a node behind the first ${loop.nodes[0]} of a loop, times one of those`, loop.ratio, 1.2],
    ...timeGoals(results.time),
    ["Worker, KiB gzipped", results.size.gzip_kib, 1536],
  ] as Cell[][]);
  const file = join("bench", "results", "latest.json");
  mkdirSync(join(root, "bench", "results"), { recursive: true });
  writeFileSync(join(root, file), `${JSON.stringify(results, null, 2)}\n`);
  console.log(`\nwritten to ${file}`);
} finally {
  await curfew.dispose();
}

function find(all: Workload[], name: string): Workload {
  const found = all.find((workload) => workload.name === name);
  if (found === undefined) throw new Error(`no workload is named ${name}`);
  return found;
}

/** Against Curfew's slowest way to do each of them. */
function leastAhead(all: Workload[], ofMany: number): number {
  const ahead = all.map(({ figures, ratios }) => {
    const own = Object.keys(ratios).map((who) => figures[who]!.p50_ms);
    return figures["workflows"]!.p50_ms / Math.max(...own);
  });
  return rounded(Math.min(...ahead, ofMany));
}
