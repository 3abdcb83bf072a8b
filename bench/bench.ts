// `npm run bench`: Curfew, the floor and Cloudflare Workflows do the same work in one workerd. Prints tables and writes
// bench/results/latest.json. With --check a missed limit is exit code 1. Ratios within one run can be compared between machines,
// times cannot.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { root } from "../tests/workerd/harness.ts";
import { coldFigures, loopFigures } from "./curfew_only.ts";
import { start } from "./contenders.ts";
import { indexRows } from "./cost.ts";
import { credentialFigures } from "./credentials.ts";
import { printTable, rounded, type Cell } from "./figures.ts";
import { firstRunFigures } from "./first_run.ts";
import { forms } from "./forms.ts";
import { liveFigures } from "./live.ts";
import { isMissed, limitsOf, MEASURED_ON, missedLimits } from "./limits.ts";
import { sizeFigures } from "./size.ts";
import { alarmFloorWorkers, timeFigures, timeTable } from "./time.ts";
import { dispatchesOfThreeSteps, rowsOfANode, throughput, workloads, workloadTable } from "./workloads.ts";

if (process.argv.includes("--forms")) {
  await forms();
  process.exit();
}

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
    credentials: await credentialFigures(),
    live: await liveFigures(curfew),
    time: await timeFigures(curfew),
    size: await sizeFigures(),
    first_run: await firstRunFigures(),
  };
  printTable(workloadTable(results.workloads));
  console.log();
  const { throughput: many, loop, cold, credentials, live } = results;
  printTable([
    [`${many.runs} runs of ${many.steps} steps, ${many.inFlight} in flight`, "runs/s", "CPU ms/run", "KiB/run"],
    ...(["floor", "workflows", "curfew"] as const).map((contender) => [
      contender,
      many[contender].runs_per_second,
      many[contender].cpu_ms_per_run,
      many[contender].resident_kib_per_run,
    ]),
  ]);
  console.log();
  printTable([
    ["Curfew only", "", ""],
    [`loop of ${loop.nodes[1]} pure nodes, ms per node: the first ${loop.nodes[0]}, the others`, ...loop.ms_per_node],
    [`loaded from the disk with one token, p50 and p95 ms`, cold.one.p50_ms, cold.one.p95_ms],
    [`loaded from the disk with ${cold.tokens} tokens, p50 and p95 ms`, cold.many.p50_ms, cold.many.p95_ms],
    [`checking one of ${credentials.tokens} credentials, p50 and p95 ms more`, credentials.added_ms, credentials.p95_added_ms],
    ["one step with a credential and without, p50 ms", rounded(credentials.one_step_ms + credentials.one_step_added_ms), credentials.one_step_ms],
    [`chain of ${live.nodes} with one watcher and with ${live.watchers}, times one without`, live.one_watcher_ratio, live.all_watchers_ratio],
    [`an event until it reaches each of ${live.watchers} watchers, p50 and p99 ms`, live.late_p50_ms, live.late_p99_ms],
    ["CPU before the first request, ms", results.size.startup_active_ms, ""],
    ["the package: from an empty directory to a completed run, s", results.first_run.seconds, ""],
  ]);
  console.log();
  printTable(timeTable(results.time));
  console.log();
  printTable([["code, before compression", "KiB"], ...Object.entries(results.size.code_kib)]);
  console.log();

  console.log(`limits, last compared with a whole measurement on ${MEASURED_ON}`);
  printTable([
    ["", "measured", "limit", ""],
    ...limitsOf(results).map((limit): Cell[] => [limit.name, limit.measured, `${limit.atLeast ? ">=" : "<="} ${limit.limit}`, isMissed(limit) ? "missed" : ""]),
  ]);
  const file = join("bench", "results", "latest.json");
  mkdirSync(join(root, "bench", "results"), { recursive: true });
  writeFileSync(join(root, file), `${JSON.stringify(results, null, 2)}\n`);
  console.log(`\nwritten to ${file}`);
  const missed = missedLimits(results);
  if (process.argv.includes("--check") && missed.length > 0) {
    console.error(`\nlimits missed:\n${missed.map((line) => `  ${line}`).join("\n")}`);
    process.exitCode = 1;
  }
} finally {
  await curfew.dispose();
}
