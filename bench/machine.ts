// CPU time and memory of workerd, read from /proc. On other systems than Linux every figure is NaN.
import { readdirSync, readFileSync } from "node:fs";
import { residentMiB as residentOf } from "../tests/crash/process.ts";

/** Linux counts CPU time in /proc in hundredths of a second. */
const TICK_MS = 10;

/** The newest workerd that this process has started. */
export function workerdPid(): number | undefined {
  const own = processes().filter(({ parent, name }) => parent === process.pid && name === "workerd");
  return own.map(({ pid }) => pid).toSorted((a, b) => a - b).at(-1);
}

/** Milliseconds of CPU so far, user and system. */
export function cpuMs(pid: number | undefined): number {
  const stat = read(pid, "stat");
  if (stat === undefined) return Number.NaN;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

export const residentMiB = (pid: number | undefined): number => (pid === undefined ? undefined : residentOf(pid)) ?? Number.NaN;

function processes(): { pid: number; parent: number; name: string }[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
      const stat = read(Number(name), "stat");
      const match = stat === undefined ? null : /^\d+ \((.*)\) \S (\d+)/.exec(stat);
      return match ? [{ pid: Number(name), parent: Number(match[2]), name: match[1]! }] : [];
    });
  } catch {
    return [];
  }
}

function read(pid: number | undefined, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    // The process has ended, or this is no Linux.
    return undefined;
  }
}
