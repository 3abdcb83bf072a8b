// A fan-out over the executor with join and merge, against the floor doing as many fetches at once; then ten times as wide.
// Two kinds of branches: pure ones, of which an executor takes many in one invocation, and ones that call a Worker, each a
// fetch of its own as each of the floor's is. Only the second compares the same number of calls.
import type { Curfew } from "../tests/workerd/harness.ts";
import { curfewRun, floorRun, median, percentile, rounded, type Sample } from "./figures.ts";

const BRANCHES = 100;
const BRANCHES_WIDE = 1_000;
const WARM_UPS = 3;
const ROUNDS = Number(process.env["CURFEW_BENCH_FAN_ROUNDS"] ?? 20);
/** A wide run takes as long as ten others. */
const ROUNDS_WIDE = Math.max(3, Math.ceil(ROUNDS / 4));

type Kind = "pure" | "calling";

const ACTIONS = {
  pure: { kind: "update_context", implementation: { set: { node: "${input.node}" } } },
  calling: { kind: "service_call", implementation: { binding: "ECHO", path: "/", body: { node: "${input.node}" } } },
};

const idOf = (kind: Kind, branches: number) => `bench-fan-${kind}-${branches}`;

function fan(kind: Kind, branches: number) {
  return {
    id: idOf(kind, branches),
    timeout: "1m",
    on_timeout: "cancel_all",
    nodes: [
      { id: "start" },
      { id: "work", task_id: "step", input_mapping: { node: "${_branch.index}" } },
      { id: "done" },
    ],
    transitions: [
      { id: "each", from_node_id: "start", to_node_id: "work", spawn_count: branches },
      {
        from_node_id: "work",
        to_node_id: "done",
        synchronization: { sibling_group: "each", strategy: "all", merge: { target: "state.results", strategy: "append" } },
      },
    ],
    tasks: [{ id: "step", dispatch: "direct", steps: [{ ref: "work", action: ACTIONS[kind] }] }],
    output_mapping: "${state.results.size()}",
  };
}

export async function fanFigures(curfew: Curfew, floorUrl: string) {
  for (const branches of [BRANCHES, BRANCHES_WIDE]) await curfew.store(fan("pure", branches));
  await curfew.store(fan("calling", BRANCHES));
  const measure = async (branches: number, rounds: number) => {
    const samples = { floor: [] as Sample[], curfew: [] as Sample[], calling: [] as Sample[] };
    for (let round = -WARM_UPS; round < rounds; round += 1) {
      const floor = await floorRun(floorUrl, "branches", branches);
      // Beside the branches: the start and the continuation.
      const run = await curfewRun(curfew, idOf("pure", branches), branches + 2);
      const calling = branches === BRANCHES ? await curfewRun(curfew, idOf("calling", branches), branches + 2) : undefined;
      if (round < 0) continue;
      samples.floor.push(floor);
      samples.curfew.push(run);
      if (calling) samples.calling.push(calling);
    }
    return samples;
  };
  console.log(`fan-outs of ${BRANCHES} branches, ${ROUNDS} rounds, and of ${BRANCHES_WIDE}, ${ROUNDS_WIDE} rounds`);
  const narrow = await measure(BRANCHES, ROUNDS);
  const wide = await measure(BRANCHES_WIDE, ROUNDS_WIDE);
  const figures = (name: "floor" | "curfew") => ({
    wall_p50_ms: rounded(median(narrow[name], "wallMs")),
    wall_p95_ms: rounded(percentile(narrow[name].map((sample) => sample.wallMs), 0.95)),
    inside_p50_ms: median(narrow[name], "insideMs"),
    wide_wall_p50_ms: rounded(median(wide[name], "wallMs")),
    // Two widths: their difference is the cost of a branch, without that of starting, joining and ending.
    rows_per_branch: rounded(
      (median(wide[name], "rowsWritten") - median(narrow[name], "rowsWritten")) / (BRANCHES_WIDE - BRANCHES),
    ),
    rows_per_run: median(narrow[name], "rowsWritten"),
  });
  const [floor, own] = [figures("floor"), figures("curfew")];
  const callingMs = rounded(median(narrow.calling, "wallMs"));
  return {
    branches: BRANCHES,
    branches_wide: BRANCHES_WIDE,
    rounds: ROUNDS,
    floor,
    curfew: own,
    ratio_wall_p50: rounded(own.wall_p50_ms / floor.wall_p50_ms),
    calling_wall_p50_ms: callingMs,
    ratio_calling_wall_p50: rounded(callingMs / floor.wall_p50_ms),
    ratio_wide: rounded(own.wide_wall_p50_ms / own.wall_p50_ms),
  };
}
