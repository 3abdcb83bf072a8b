// Measures several ways to do the same work side by side.
import type { Bill, Sample } from "./contenders.ts";
import { median, percentile, rounded } from "./figures.ts";
import { cpuMs, residentMiB } from "./machine.ts";

/** Runs of one contender before the next one runs: all see the same machine, and each its own warm caches. */
const BLOCK = 5;
/** Runs of each before it is measured: a busy isolate has optimised code. */
const WARM_UPS = 40;
/** The longest that a warm-up takes. */
const WARM_UP_MS = 4_000;
/** Work after the end of a run (the index) must not be measured with the next contender. */
const REST_MS = 350;

export interface Figures {
  p50_ms: number;
  p95_ms: number;
  inside_p50_ms: number;
  /** Of workerd for a run, including the work after its end. */
  cpu_ms: number;
  bill: Bill;
  /** Of workerd, after the last run. */
  resident_mib: number;
}

export async function compare<Name extends string>(
  pid: number | undefined,
  contenders: Record<Name, () => Promise<Sample>>,
  rounds: number,
): Promise<Record<Name, Figures>> {
  const names = Object.keys(contenders) as Name[];
  const samples = new Map(names.map((name) => [name, [] as Sample[]]));
  const cpu = new Map(names.map((name) => [name, 0]));
  const resident = new Map<Name, number>();
  for (const name of names) {
    const until = performance.now() + WARM_UP_MS;
    for (let run = 0; run < WARM_UPS && performance.now() < until; run += 1) await contenders[name]();
  }
  await rest();
  for (let done = 0; done < rounds; done += BLOCK) {
    for (const name of names) {
      const before = cpuMs(pid);
      for (let round = 0; round < BLOCK; round += 1) samples.get(name)!.push(await contenders[name]());
      await rest();
      cpu.set(name, cpu.get(name)! + cpuMs(pid) - before);
      resident.set(name, residentMiB(pid));
    }
  }
  const figures = (name: Name): Figures => {
    const own = samples.get(name)!;
    const wall = own.map(({ wallMs }) => wallMs);
    return {
      p50_ms: rounded(median(wall)),
      p95_ms: rounded(percentile(wall, 0.95)),
      inside_p50_ms: median(own.map(({ insideMs }) => insideMs)),
      cpu_ms: rounded(cpu.get(name)! / own.length),
      // Every run writes the same rows.
      bill: own[0]!.bill,
      resident_mib: rounded(resident.get(name)!, 0),
    };
  };
  return Object.fromEntries(names.map((name) => [name, figures(name)])) as Record<Name, Figures>;
}

export const rest = (): Promise<void> => new Promise((done) => setTimeout(done, REST_MS));
