// The workloads that all contenders run, and what a run of each takes.
import type { Curfew } from "../tests/workerd/harness.ts";
import { compare, rest, type Figures } from "./compare.ts";
import { curfewRun, otherRun, start, type Work } from "./contenders.ts";
import { dollars, WORKFLOWS_STEP } from "./cost.ts";
import { chain, fan, steps, type Way } from "./documents.ts";
import { median, rounded, type Cell } from "./figures.ts";
import { cpuMs, residentMiB, workerdPid } from "./machine.ts";

const ROUNDS = Number(process.env["CURFEW_BENCH_ROUNDS"] ?? 40);
/** A wide run takes as long as ten other runs. */
const ROUNDS_WIDE = Math.ceil(ROUNDS / 4);
const MANY = { runs: 200, steps: 5, inFlight: 20 };

export interface Workload {
  name: string;
  /** Nodes of a run: figures per node are divided by it. */
  nodes: number;
  figures: Record<string, Figures>;
  /** The p50 of Curfew's ways, divided by the floor's. */
  ratios: Record<string, number>;
  /** Dollars per million nodes. */
  dollars: Record<string, number>;
}

/** The work of the other contenders, and the documents by which Curfew does the same. */
interface Comparison {
  name: string;
  nodes: number;
  others: Record<string, Work>;
  own: Record<string, { document: { id: string }; tokens: number; newest?: boolean }>;
  rounds: number;
}

const chained = (way: Way, nodes: number, newest = false) => ({ document: chain(way, nodes), tokens: nodes, newest });
const fanned = (way: Way, branches: number) => ({ document: fan(way, branches), tokens: branches + 2 });

const COMPARISONS: Comparison[] = [
  {
    name: "one step",
    nodes: 1,
    others: { floor: { nodes: 1 }, workflows: { nodes: 1 } },
    own: { curfew: chained("direct", 1), "curfew, newest": chained("direct", 1, true) },
    rounds: ROUNDS * 2,
  },
  {
    name: "chain of 50",
    nodes: 50,
    others: { floor: { nodes: 50 }, workflows: { nodes: 50 } },
    own: { curfew: chained("direct", 50), "curfew, inline": chained("inline", 50) },
    rounds: ROUNDS,
  },
  {
    name: "chain of 50, two hops",
    nodes: 50,
    others: { floor: { nodes: 50, hops: 2 }, workflows: { nodes: 50, hops: 2 } },
    own: { curfew: chained("calling", 50) },
    rounds: ROUNDS,
  },
  {
    name: "fan of 100",
    nodes: 100,
    others: { floor: { branches: 100 }, workflows: { branches: 100 } },
    own: { curfew: fanned("direct", 100), "curfew, calling": fanned("calling", 100) },
    rounds: ROUNDS,
  },
  {
    name: "fan of 1000",
    nodes: 1_000,
    others: { floor: { branches: 1_000 }, workflows: { branches: 1_000 } },
    own: { curfew: fanned("direct", 1_000) },
    rounds: ROUNDS_WIDE,
  },
];

/** Runs only the workload of this name. */
const ONLY = process.env["CURFEW_BENCH_ONLY"];

/** Each in its own workerd: memory and work that one leaves behind must not slow the next. */
export async function workloads(d1Rows: number): Promise<Workload[]> {
  const all: Workload[] = [];
  for (const { name, nodes, others, own, rounds } of COMPARISONS.filter(({ name }) => ONLY === undefined || name === ONLY)) {
    console.log(`${name}, ${rounds} rounds`);
    const figures = await inOwnWorkerd(async (curfew, pid) => {
      for (const { document } of Object.values(own)) await curfew.store(document);
      const contenders = {
        ...map(others, (work, contender) => () => otherRun(curfew, contender as "floor" | "workflows", work)),
        ...map(own, ({ document, tokens, newest }) => () => curfewRun(curfew, document.id, tokens, newest)),
      };
      return compare(pid, contenders, rounds);
    });
    all.push({
      name,
      nodes,
      figures,
      ratios: map(own, (_, contender) => rounded(figures[contender]!.p50_ms / figures["floor"]!.p50_ms)),
      dollars: map(own, (_, contender) => rounded(dollars(figures[contender]!, d1Rows) / nodes)),
    });
  }
  return all;
}

async function inOwnWorkerd<T>(measure: (curfew: Curfew, pid: number | undefined) => Promise<T>): Promise<T> {
  const curfew = await start();
  try {
    return await measure(curfew, workerdPid());
  } finally {
    await curfew.dispose();
  }
}

function map<T, U>(record: Record<string, T>, make: (value: T, key: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, make(value, key)]));
}

export type Throughput = Awaited<ReturnType<typeof throughput>>;

/** Many runs at once. The contenders alternate. */
export const throughput = () => inOwnWorkerd(throughputIn);

async function throughputIn(curfew: Curfew, pid: number | undefined) {
  console.log(`${MANY.runs} runs of ${MANY.steps} steps, ${MANY.inFlight} in flight`);
  const document = chain("direct", MANY.steps);
  await curfew.store(document);
  const contenders = {
    floor: () => otherRun(curfew, "floor", { nodes: MANY.steps }),
    workflows: () => otherRun(curfew, "workflows", { nodes: MANY.steps }),
    curfew: () => curfewRun(curfew, document.id, MANY.steps),
  };
  type Name = keyof typeof contenders;
  const names = Object.keys(contenders) as Name[];
  const millis = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  const cpu = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  const memory = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = 0; round < 7; round += 1) {
    for (const name of names) {
      const [cpuBefore, residentBefore] = [cpuMs(pid), residentMiB(pid)];
      const took = await runConcurrently(contenders[name]);
      await rest();
      // The first two rounds warm up.
      if (round < 2) continue;
      millis[name].push(took);
      cpu[name].push((cpuMs(pid) - cpuBefore) / MANY.runs);
      memory[name].push(((residentMiB(pid) - residentBefore) * 1024) / MANY.runs);
    }
  }
  const figures = (name: Name) => ({
    runs_per_second: rounded((MANY.runs / median(millis[name])) * 1_000, 1),
    cpu_ms_per_run: rounded(median(cpu[name])),
    resident_kib_per_run: rounded(median(memory[name]), 0),
  });
  const [floor, workflows, own] = [figures("floor"), figures("workflows"), figures("curfew")];
  return {
    ...MANY,
    floor,
    workflows,
    curfew: own,
    ratio: rounded(own.runs_per_second / floor.runs_per_second),
    times_workflows: rounded(own.runs_per_second / workflows.runs_per_second),
  };
}

async function runConcurrently(run: () => Promise<unknown>): Promise<number> {
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

/** Rows of two chains: their difference is the cost of the nodes, without that of starting and ending a run. */
export async function rowsOfANode(curfew: Curfew) {
  const [short, long] = [10, 50];
  for (const nodes of [short, long]) await curfew.store(chain("direct", nodes));
  const rows = async (nodes: number) => (await curfewRun(curfew, `bench-chain-direct-${nodes}`, nodes)).bill.rows_written;
  const perNode = ((await rows(long)) - (await rows(short))) / (long - short);
  return { rows_per_node: rounded(perNode), rows_besides: rounded((await rows(short)) - perNode * short) };
}

/** How often the token of a task with three calls was dispatched. */
export async function dispatchesOfThreeSteps(curfew: Curfew): Promise<number> {
  const document = steps(3);
  await curfew.store(document);
  const run = await curfew.ended(await curfew.start(document.id));
  const tokens = await curfew.tokens(run.id);
  const done = tokens.flatMap((token) => token.steps ?? []).filter((step) => step.status === "completed");
  if (done.length !== 3) throw new Error(`not every step ran: ${JSON.stringify(tokens)}`);
  return tokens.reduce((sum, token) => sum + token.epoch, 0);
}

export function workloadTable(all: Workload[]): Cell[][] {
  const head = ["", "p50 ms", "p95 ms", "x floor", "rows/node", "read/node", "requests/node", "CPU ms/node", "$/M nodes", "MiB"];
  const rows = all.flatMap(({ name, nodes, figures, dollars: prices }) =>
    Object.entries(figures).map(([contender, own]): Cell[] => [
      `${name}: ${contender}`,
      own.p50_ms,
      own.p95_ms,
      rounded(own.p50_ms / figures["floor"]!.p50_ms),
      rounded(own.bill.rows_written / nodes),
      rounded(own.bill.rows_read / nodes),
      rounded(own.bill.object_requests / nodes, 3),
      rounded(own.cpu_ms / nodes, 3),
      contender === "workflows" ? WORKFLOWS_STEP : prices[contender],
      own.resident_mib,
    ]),
  );
  return [head, ...rows];
}
