// One process: Curfew with persistent storage, until it is killed or stopped.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../workerd/poll.ts";
import type { ServerReady } from "./server.ts";

export interface CurfewProcess {
  url: string;
  workerdPid: number;
  /** kill -9: nothing is flushed. */
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** Lets the objects of these runs publish themselves to the index: a kill loses what was in the local queue. */
  probe(runIds: string[]): Promise<void>;
}

export async function startProcess(directory: string, vars: Record<string, string>, executorVars: Record<string, string> = {}): Promise<CurfewProcess> {
  const [storage, scratch] = [join(directory, "disk"), join(directory, "scratch")];
  for (const path of [storage, scratch]) mkdirSync(path, { recursive: true });
  const child = fork(fileURLToPath(new URL("server.ts", import.meta.url)), [storage, JSON.stringify(vars), JSON.stringify(executorVars)], {
    // miniflare's temporary files are removed with the directory.
    env: { ...process.env, TMPDIR: scratch },
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const exited = once(child, "exit");
  const first = await Promise.race([once(child, "message"), exited.then(([code, signal]) => new Error(`ended: ${code ?? signal}`))]);
  if (first instanceof Error) throw first;
  const { url, workerdPid } = first[0] as ServerReady;
  return {
    url,
    workerdPid,
    kill: async () => {
      process.kill(workerdPid, "SIGKILL");
      // Its parent, too, or miniflare would start another workerd.
      child.kill("SIGKILL");
      await exited;
      // Two processes with one storage would be another test.
      await until("workerd to end", () => !isAlive(workerdPid));
    },
    probe: async (runIds) => {
      const probed = once(child, "message");
      child.send(runIds);
      await probed;
    },
    stop: async () => {
      child.disconnect();
      await exited;
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // A zombie process has ended. Its name may contain anything; the state follows the name.
    return !/^.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return true; // no such file system
  }
}

/** The resident memory of the process in MiB; undefined if it is not available. */
export const residentMiB = (pid: number): number | undefined => memoryMiB(pid, "VmRSS");

/** The peak since the start or since `resetPeak`. */
export const peakMiB = (pid: number | undefined): number | undefined => memoryMiB(pid, "VmHWM");

/** Resets the peak to the current memory and returns it; undefined if that is not possible. */
export function resetPeak(pid: number | undefined): number | undefined {
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
