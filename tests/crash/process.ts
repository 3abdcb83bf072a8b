// One life of the process: Curfew on a directory that outlives it, until it is killed or stopped.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../workerd/poll.ts";
import type { Ready } from "./server.ts";

export interface Life {
  url: string;
  workerdPid: number;
  /** kill -9: nothing is flushed, nobody says goodbye. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

export async function begin(directory: string, vars: Record<string, string>): Promise<Life> {
  const [disk, scratch] = [join(directory, "disk"), join(directory, "scratch")];
  for (const path of [disk, scratch]) mkdirSync(path, { recursive: true });
  const child = fork(fileURLToPath(new URL("server.ts", import.meta.url)), [disk, JSON.stringify(vars)], {
    // What miniflare leaves behind when it is killed goes away with the rest.
    env: { ...process.env, TMPDIR: scratch },
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const exited = once(child, "exit");
  const first = await Promise.race([once(child, "message"), exited.then(([code, signal]) => new Error(`ended: ${code ?? signal}`))]);
  if (first instanceof Error) throw first;
  const { url, workerdPid } = first[0] as Ready;
  return {
    url,
    workerdPid,
    kill: async () => {
      process.kill(workerdPid, "SIGKILL");
      // Its parent too, or miniflare would start another workerd.
      child.kill("SIGKILL");
      await exited;
      // Two processes on one disk would be another test.
      await until("workerd to be gone", () => !lives(workerdPid));
    },
    stop: async () => {
      child.disconnect();
      await exited;
    },
  };
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // A process that has ended and that nobody has asked about yet. The name may hold anything, the state follows it.
    return !/^.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return true; // no such file system
  }
}

/** What the process holds in memory, in MiB; undefined where nobody says. */
export const residentMiB = (pid: number): number | undefined => memoryMiB(pid, "VmRSS");

/** The most it has held, since it began or since `forgetPeak`. */
export const peakMiB = (pid: number | undefined): number | undefined => memoryMiB(pid, "VmHWM");

/** Begins a new peak at what the process holds now, which is returned; undefined where that cannot be done. */
export function forgetPeak(pid: number | undefined): number | undefined {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
    return memoryMiB(pid, "VmHWM");
  } catch {
    return undefined;
  }
}

function memoryMiB(pid: number | undefined, field: "VmRSS" | "VmHWM"): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const kib = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1];
    return kib === undefined ? undefined : Number(kib) / 1024;
  } catch {
    return undefined;
  }
}
