// `npm run bench -- --forms`: Curfew as one Worker and with a separate executor, by turns, each in a workerd of its own. One workload
// after the other; within a workload the forms alternate in blocks, so both see the same machine.
import type { Curfew } from "../tests/workerd/harness.ts";
import { rest } from "./compare.ts";
import { curfewRun, start } from "./contenders.ts";
import { chain, fan } from "./documents.ts";
import { median, percentile, printTable, rounded, type Cell } from "./figures.ts";
import { cpuMs, residentMiB, workerdPid } from "./machine.ts";

const ROUNDS = Number(process.env["CURFEW_BENCH_ROUNDS"] ?? 40);
const BLOCK = 5;
const MANY = { runs: 200, inFlight: 20 };

interface Form {
  name: string;
  curfew: Curfew;
  pid: number | undefined;
}

const WORKLOADS = [
  { name: "chain of 50", document: chain("direct", 50), tokens: 50 },
  { name: "chain of 50, two hops", document: chain("calling", 50), tokens: 50 },
  { name: "fan of 100", document: fan("direct", 100), tokens: 102 },
];
const SHORT = chain("direct", 5);

export async function forms(): Promise<void> {
  const rows: Cell[][] = [["", "one Worker", "separate executor", "one / separate"]];
  for (const { name, document, tokens } of WORKLOADS) {
    await withBoth(async (both) => {
      for (const { curfew } of both) await curfew.store(document);
      const run = ({ curfew }: Form) => curfewRun(curfew, document.id, tokens);
      for (const form of both) for (let round = 0; round < 30; round += 1) await run(form);
      const wall = both.map((): number[] => []);
      for (let done = 0; done < ROUNDS; done += BLOCK) {
        for (const [index, form] of both.entries()) {
          for (let round = 0; round < BLOCK; round += 1) wall[index]!.push((await run(form)).wallMs);
          await rest();
        }
      }
      rows.push(row(`${name}: p50 ms`, wall.map(median)));
      rows.push(row(`${name}: p95 ms`, wall.map((values) => percentile(values, 0.95))));
    });
  }
  await withBoth(async (both) => {
    for (const { curfew } of both) await curfew.store(SHORT);
    const perSecond = both.map((): number[] => []);
    const cpu = both.map((): number[] => []);
    for (let round = 0; round < 7; round += 1) {
      for (const [index, form] of both.entries()) {
        const before = cpuMs(form.pid);
        const tookMs = await runMany(form.curfew);
        await rest();
        // The first two rounds warm up.
        if (round < 2) continue;
        perSecond[index]!.push((MANY.runs / tookMs) * 1_000);
        cpu[index]!.push((cpuMs(form.pid) - before) / MANY.runs);
      }
    }
    rows.push(row("5 steps, 20 in flight: runs/s", perSecond.map(median)));
    rows.push(row("5 steps, 20 in flight: CPU ms/run", cpu.map(median)));
    rows.push(row("resident after them, MiB", both.map(({ pid }) => residentMiB(pid))));
  });
  printTable(rows);
}

const row = (name: string, [one, separate]: number[]): Cell[] => [name, rounded(one!), rounded(separate!), rounded(one! / separate!, 3)];

async function withBoth(measure: (both: Form[]) => Promise<void>): Promise<void> {
  const both: Form[] = [];
  try {
    for (const [name, separateExecutor] of [["one", false], ["separate", true]] as const) {
      both.push({ name, curfew: await start({ separateExecutor }), pid: workerdPid() });
    }
    await measure(both);
  } finally {
    for (const { curfew } of both) await curfew.dispose();
  }
}

async function runMany(curfew: Curfew): Promise<number> {
  const startedAt = performance.now();
  let left = MANY.runs;
  const client = async () => {
    while (left > 0) {
      left -= 1;
      await curfewRun(curfew, SHORT.id, 5);
    }
  };
  await Promise.all(Array.from({ length: MANY.inFlight }, client));
  return performance.now() - startedAt;
}
