// Whole runs: one of a single step, many at once, and one that goes round ten thousand times. The floor does the same steps.
import type { Curfew } from "../tests/workerd/harness.ts";
import { curfewRun, floorRun, median, percentile, rounded, type Sample } from "./figures.ts";

const WARM_UPS = 5;
const ROUNDS = Number(process.env["CURFEW_BENCH_RUN_ROUNDS"] ?? 30);
const MANY = { runs: 200, steps: 5, inFlight: 20 };
const ROUND_TRIPS = [1_000, 10_000];

function chain(steps: number) {
  const ids = Array.from({ length: steps }, (_, index) => `n${index}`);
  const action = { kind: "update_context", implementation: { set: { node: "${input.node}" } } };
  return {
    id: `bench-run-${steps}`,
    timeout: "1m",
    on_timeout: "cancel_all",
    nodes: ids.map((id, index) => ({ id, task_id: "step", input_mapping: { node: index } })),
    transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
    tasks: [{ id: "step", dispatch: "direct", steps: [{ ref: "set", action }] }],
  };
}

/** One node that comes back to itself: what a node costs must not grow with those before it. */
function loop(rounds: number) {
  const action = { kind: "update_context", implementation: { set: { n: "${input.n + 1}" } } };
  return {
    id: `bench-loop-${rounds}`,
    timeout: "5m",
    on_timeout: "cancel_all",
    limits: { tokens_total: rounds + 10, loop_iterations: rounds + 10 },
    nodes: [
      { id: "begin", output_mapping: { "state.n": 0 } },
      { id: "again", task_id: "count", input_mapping: { n: "${state.n}" }, output_mapping: { "state.n": "${result.n}" } },
    ],
    transitions: [
      { from_node_id: "begin", to_node_id: "again" },
      { from_node_id: "again", to_node_id: "again", condition: `state.n < ${rounds}` },
    ],
    tasks: [{ id: "count", steps: [{ ref: "add", action }] }],
  };
}

/** Milliseconds for `runs` of them, so many in flight. */
async function together(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  let left = MANY.runs;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await run();
    }
  };
  await Promise.all(Array.from({ length: MANY.inFlight }, worker));
  return performance.now() - startedAt;
}

export async function runFigures(curfew: Curfew, floorUrl: string) {
  for (const steps of [1, MANY.steps]) await curfew.store(chain(steps));
  console.log(`runs of one step, ${ROUNDS} rounds; ${MANY.runs} of ${MANY.steps} steps, ${MANY.inFlight} in flight; loops of ${ROUND_TRIPS.join(" and ")}`);
  const samples = { floor: [] as Sample[], curfew: [] as Sample[] };
  for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
    const floor = await floorRun(floorUrl, "nodes", 1);
    const run = await curfewRun(curfew, "bench-run-1", 1);
    if (round < 0) continue;
    samples.floor.push(floor);
    samples.curfew.push(run);
  }
  // Alternately, so that both meet the same machine; nothing is waited for in between, as nobody would.
  const many = { floor: [] as number[], curfew: [] as number[] };
  for (let round = 0; round < 3; round += 1) {
    many.floor.push(await together(() => floorRun(floorUrl, "nodes", MANY.steps, 1, 0)));
    many.curfew.push(await together(() => curfewRun(curfew, `bench-run-${MANY.steps}`, MANY.steps, 0)));
  }
  const perNode: number[] = [];
  for (const rounds of ROUND_TRIPS) {
    await curfew.store(loop(rounds));
    const { insideMs } = await curfewRun(curfew, `bench-loop-${rounds}`, rounds + 1);
    perNode.push(insideMs / rounds);
  }
  const one = (name: keyof typeof samples) => rounded(median(samples[name], "wallMs"));
  const perSecond = (name: keyof typeof many) => rounded((MANY.runs / percentile(many[name], 0.5)) * 1_000, 1);
  return {
    rounds: ROUNDS,
    floor_one_step_p50_ms: one("floor"),
    one_step_p50_ms: one("curfew"),
    ratio_one_step: rounded(one("curfew") / one("floor")),
    many: MANY,
    floor_runs_per_second: perSecond("floor"),
    runs_per_second: perSecond("curfew"),
    ratio_throughput: rounded(perSecond("curfew") / perSecond("floor")),
    loops: ROUND_TRIPS,
    loop_ms_per_node: perNode.map((millis) => rounded(millis, 4)),
    ratio_loop: rounded(perNode[1]! / perNode[0]!),
  };
}

export const runTable = (runs: Awaited<ReturnType<typeof runFigures>>): (string | number)[][] => [
  ["whole runs", "floor", "curfew"],
  ["one step, p50 ms", runs.floor_one_step_p50_ms, runs.one_step_p50_ms],
  [`${runs.many.runs} of ${runs.many.steps} steps, ${runs.many.inFlight} in flight, runs a second`, runs.floor_runs_per_second, runs.runs_per_second],
  ...runs.loops.map((rounds, index) => [`loop of ${rounds} pure nodes, ms a node`, "", runs.loop_ms_per_node[index]!]),
];

export const runGoals = (runs: Awaited<ReturnType<typeof runFigures>>): (string | number)[][] => [
  ["run of one step, times the floor", runs.ratio_one_step, 1.2],
  ["runs a second, times the floor's (at least)", runs.ratio_throughput, 1],
  ["a node of the long loop, times one of the short", runs.ratio_loop, 1.2],
];
