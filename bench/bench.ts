// The figures of `npm run bench`: a chain of 50 tasks, a fan-out of 100 and deadlines against the floor, in one workerd, runs
// interleaved so that both meet the same machine. Prints tables, writes bench/results/latest.json.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { moduleWorker, root, startCurfew } from "../tests/workerd/harness.ts";
import { fanFigures } from "./fan.ts";
import { curfewRun, floorRun, percentile, printTable, rounded, type Sample } from "./figures.ts";
import { laneFigures, laneGoals, laneTable } from "./lanes.ts";
import { runFigures, runGoals, runTable } from "./runs.ts";
import { alarmFloorWorkers, timeFigures, timeGoals, timeTable } from "./time.ts";

const NODES = 50;
/** Rows are counted on two lengths: their difference is the cost of a node, without that of starting and ending. */
const NODES_SHORT = 10;
const WARM_UPS = 5;
const ROUNDS = Number(process.env["CURFEW_BENCH_ROUNDS"] ?? 30);

function chain(nodes: number) {
  const ids = Array.from({ length: nodes }, (_, index) => `n${index}`);
  return {
    id: `bench-chain-${nodes}`,
    timeout: "1m",
    on_timeout: "cancel_all",
    nodes: ids.map((id, index) => ({ id, task_id: "step", input_mapping: { node: index } })),
    transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
    tasks: [
      {
        id: "step",
        dispatch: "direct",
        steps: [{ ref: "set", action: { kind: "update_context", implementation: { set: { node: "${input.node}" } } } }],
      },
    ],
  };
}

async function gzipKib(): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  try {
    const wrangler = join(root, "node_modules", "wrangler", "bin", "wrangler.js");
    const args = [wrangler, "deploy", "--dry-run", "-c", "wrangler.toml", "--outdir", directory];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout: 60_000 });
    return Number(/gzip: ([\d.]+) KiB/.exec(stdout)?.[1]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const floorPath = "/__floor";
const curfew = await startCurfew({
  vars: { CURFEW_DEBUG: "on" },
  extraWorkers: [
    moduleWorker("floor", "bench/workers/floor.mjs", {
      triggers: [{ type: "fetch", pattern: `*${floorPath}*` }],
      env: {
        FLOOR: { type: "durable-object", worker: "floor", exportName: "FloorObject" },
        STEP: { type: "worker", worker: "step" },
        HOP: { type: "worker", worker: "hop" },
      },
      exports: { FloorObject: { type: "durable-object", storage: "sqlite" } },
    }),
    moduleWorker("step", "bench/workers/step.mjs"),
    moduleWorker("hop", "bench/workers/hop.mjs", { env: { STEP: { type: "worker", worker: "step" } } }),
    ...alarmFloorWorkers,
  ],
});
const floorUrl = curfew.url + floorPath;
const chainRun = (nodes: number): Promise<Sample> => curfewRun(curfew, `bench-chain-${nodes}`, nodes);

try {
  const samples = { floor: [] as Sample[], curfew: [] as Sample[] };
  for (const nodes of [NODES, NODES_SHORT]) await curfew.store(chain(nodes));
  console.log(`chains of ${NODES} nodes, ${WARM_UPS} warm-ups, ${ROUNDS} rounds`);
  for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
    const floor = await floorRun(floorUrl, "nodes", NODES);
    const run = await chainRun(NODES);
    if (round < 0) continue;
    samples.floor.push(floor);
    samples.curfew.push(run);
  }

  const short = { floor: await floorRun(floorUrl, "nodes", NODES_SHORT), curfew: await chainRun(NODES_SHORT) };
  const figures = (name: "floor" | "curfew") => {
    const wall = samples[name].map((sample) => sample.wallMs);
    const inside = samples[name].map((sample) => sample.insideMs);
    const rows = samples[name][0]!.rowsWritten;
    const rowsPerNode = (rows - short[name].rowsWritten) / (NODES - NODES_SHORT);
    return {
      wall_p50_ms: rounded(percentile(wall, 0.5)),
      wall_p95_ms: rounded(percentile(wall, 0.95)),
      inside_p50_ms: percentile(inside, 0.5),
      node_p50_ms: rounded(percentile(wall, 0.5) / NODES, 3),
      rows_per_node: rounded(rowsPerNode),
      rows_per_run_besides: rounded(rows - rowsPerNode * NODES),
    };
  };
  const results = {
    at: new Date().toISOString(),
    machine: { cores: cpus().length, node: process.version },
    nodes: NODES,
    rounds: ROUNDS,
    floor: figures("floor"),
    curfew: figures("curfew"),
    ratio_wall_p50: 0,
    ratio_inside_p50: 0,
    fan: await fanFigures(curfew, floorUrl),
    lanes: await laneFigures(curfew, floorUrl),
    runs: await runFigures(curfew, floorUrl),
    time: await timeFigures(curfew),
    gzip_kib: await gzipKib(),
  };
  results.ratio_wall_p50 = rounded(results.curfew.wall_p50_ms / results.floor.wall_p50_ms);
  results.ratio_inside_p50 = rounded(results.curfew.inside_p50_ms / results.floor.inside_p50_ms);

  const line = (name: "floor" | "curfew") => {
    const own = results[name];
    return [name, own.wall_p50_ms, own.wall_p95_ms, own.inside_p50_ms, own.node_p50_ms, own.rows_per_node, own.rows_per_run_besides];
  };
  printTable([
    ["", "p50 ms", "p95 ms", "inside p50 ms", "p50 ms/node", "rows/node", "other rows/run"],
    line("floor"),
    line("curfew"),
  ]);
  console.log();
  const fanLine = (name: "floor" | "curfew") => {
    const own = results.fan[name];
    return [name, own.wall_p50_ms, own.wall_p95_ms, own.inside_p50_ms, own.wide_wall_p50_ms, own.rows_per_branch, own.rows_per_run];
  };
  printTable([
    [`fan-out of ${results.fan.branches}`, "p50 ms", "p95 ms", "inside p50 ms", `p50 ms of ${results.fan.branches_wide}`, "rows/branch", "rows/run"],
    fanLine("floor"),
    fanLine("curfew"),
  ]);
  console.log();
  printTable(laneTable(results.lanes));
  console.log();
  printTable(runTable(results.runs));
  console.log();
  printTable(timeTable(results.time));
  console.log();
  printTable([
    ["goal", "measured", "limit"],
    [`chain of ${NODES}, lane direct, p50, times the floor`, results.ratio_wall_p50, 1.3],
    ["the same inside the object", results.ratio_inside_p50, 1.3],
    ...laneGoals(results.lanes),
    ...runGoals(results.runs),
    ["rows written per node", results.curfew.rows_per_node, 4],
    ["other rows per run", results.curfew.rows_per_run_besides, 14],
    [`fan-out of ${results.fan.branches} pure branches, lane direct, p50, times the floor`, results.fan.ratio_wall_p50, 0.5],
    [`fan-out of ${results.fan.branches} branches that call a Worker each, times the floor`, results.fan.ratio_calling_wall_p50, 1],
    [`fan-out of ${results.fan.branches_wide}, times that of ${results.fan.branches}`, results.fan.ratio_wide, 12],
    ["rows written per branch", results.fan.curfew.rows_per_branch, 4],
    ...timeGoals(results.time),
    ["Worker, KiB gzipped", results.gzip_kib, 1536],
  ]);
  const file = join("bench", "results", "latest.json");
  mkdirSync(join(root, "bench", "results"), { recursive: true });
  writeFileSync(join(root, file), `${JSON.stringify(results, null, 2)}\n`);
  console.log(`\nwritten to ${file}`);
} finally {
  await curfew.dispose();
}
