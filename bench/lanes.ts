// Chains by lane: pure nodes that run inside the coordinator against the same floor as those that an executor runs, and nodes
// that call a Worker of the user's through the executor, against a floor with a Worker in between.
import type { Curfew } from "../tests/workerd/harness.ts";
import { curfewRun, floorRun, median, rounded, type Sample } from "./figures.ts";

const NODES = 50;
const WARM_UPS = 3;
const ROUNDS = Number(process.env["CURFEW_BENCH_LANE_ROUNDS"] ?? 20);

const ACTIONS = {
  inline: { kind: "update_context", implementation: { set: { node: "${input.node}" } } },
  calling: { kind: "service_call", implementation: { binding: "ECHO", path: "/", method: "POST", body: { node: "${input.node}" } } },
};
type Kind = keyof typeof ACTIONS;

function chain(kind: Kind) {
  const ids = Array.from({ length: NODES }, (_, index) => `n${index}`);
  return {
    id: `bench-lane-${kind}`,
    timeout: "1m",
    on_timeout: "cancel_all",
    nodes: ids.map((id, index) => ({ id, task_id: "step", input_mapping: { node: index } })),
    transitions: ids.slice(1).map((id, index) => ({ from_node_id: ids[index], to_node_id: id })),
    tasks: [{ id: "step", steps: [{ ref: "work", action: ACTIONS[kind] }] }],
  };
}

/** Three calls of one task: how often its token was dispatched for them. */
async function dispatchesOfThreeSteps(curfew: Curfew): Promise<number> {
  const steps = ["one", "two", "three"].map((ref) => ({ ref, action: ACTIONS.calling }));
  const nodes = [{ id: "n0", task_id: "steps", input_mapping: { node: 0 } }];
  await curfew.store({ id: "bench-three-steps", timeout: "1m", nodes, tasks: [{ id: "steps", steps }] } as { id: string });
  const run = await curfew.ended(await curfew.start("bench-three-steps"));
  const tokens = await curfew.tokens(run.id);
  const done = tokens.flatMap((token) => token.steps ?? []).filter((step) => step.status === "completed");
  if (done.length !== 3) throw new Error(`not every step ran: ${JSON.stringify(tokens)}`);
  return tokens.reduce((sum, token) => sum + token.epoch, 0);
}

export async function laneFigures(curfew: Curfew, floorUrl: string) {
  for (const kind of ["inline", "calling"] as const) await curfew.store(chain(kind));
  console.log(`chains of ${NODES} nodes by lane, ${ROUNDS} rounds`);
  const samples = { floor: [] as Sample[], inline: [] as Sample[], floorTwoHops: [] as Sample[], calling: [] as Sample[] };
  for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
    const floor = await floorRun(floorUrl, "nodes", NODES);
    const inline = await curfewRun(curfew, "bench-lane-inline", NODES);
    const floorTwoHops = await floorRun(floorUrl, "nodes", NODES, 2);
    const calling = await curfewRun(curfew, "bench-lane-calling", NODES);
    if (round < 0) continue;
    samples.floor.push(floor);
    samples.inline.push(inline);
    samples.floorTwoHops.push(floorTwoHops);
    samples.calling.push(calling);
  }
  const wall = (name: keyof typeof samples) => rounded(median(samples[name], "wallMs"));
  return {
    nodes: NODES,
    rounds: ROUNDS,
    floor_wall_p50_ms: wall("floor"),
    inline_wall_p50_ms: wall("inline"),
    inline_rows_per_run: median(samples.inline, "rowsWritten"),
    ratio_inline: rounded(wall("inline") / wall("floor")),
    floor_two_hops_wall_p50_ms: wall("floorTwoHops"),
    calling_wall_p50_ms: wall("calling"),
    ratio_calling: rounded(wall("calling") / wall("floorTwoHops")),
    dispatches_of_three_steps: await dispatchesOfThreeSteps(curfew),
  };
}

export const laneTable = (lanes: Awaited<ReturnType<typeof laneFigures>>): (string | number)[][] => [
  [`chain of ${lanes.nodes}`, "floor p50 ms", "curfew p50 ms"],
  ["pure nodes, inside the coordinator", lanes.floor_wall_p50_ms, lanes.inline_wall_p50_ms],
  ["nodes that call a Worker, two hops", lanes.floor_two_hops_wall_p50_ms, lanes.calling_wall_p50_ms],
];

export const laneGoals = (lanes: Awaited<ReturnType<typeof laneFigures>>): (string | number)[][] => [
  [`chain of ${lanes.nodes}, lane inline, times the floor`, lanes.ratio_inline, 0.3],
  [`chain of ${lanes.nodes} that calls a Worker, times a floor with two hops`, lanes.ratio_calling, 1.3],
  ["dispatches of a task of three steps", lanes.dispatches_of_three_steps, 1],
];
