// How late deadlines are handled, alone and a thousand at once, and the cost of a wait of 30 days.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { moduleWorker, startCurfew, type Curfew } from "../tests/workerd/harness.ts";
import { startPeer } from "../tests/workerd/peer.ts";
import { latenessFigures, ROUNDS } from "./lateness.ts";
import { atOnceFigures, waitingFigures, WAITS } from "./waits.ts";

const alarmFloorPath = "/__alarm-floor";

/** Workers that these measurements need in the workerd of the others. */
export const alarmFloorWorkers = [
  moduleWorker("alarm-floor", "bench/workers/alarm-floor.mjs", {
    triggers: [{ type: "fetch", pattern: `*${alarmFloorPath}*` }],
    env: {
      FLOOR: { type: "durable-object", worker: "alarm-floor", exportName: "AlarmFloorObject" },
      RELAY: { type: "worker", worker: "relay" },
    },
    exports: { AlarmFloorObject: { type: "durable-object", storage: "sqlite" } },
  }),
  moduleWorker("relay", "bench/workers/relay.mjs"),
];

export type TimeFigures = Awaited<ReturnType<typeof timeFigures>>;

export async function timeFigures(curfew: Curfew) {
  console.log(`deadlines: ${ROUNDS} of each kind, ${WAITS} at once, a wait of 30 days`);
  const directory = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  const executor = "bench/workers/executor-gone.mjs";
  const [withoutExecutor, peer] = await Promise.all([
    startCurfew({ unchecked: true, executor, persistTo: directory, extraWorkers: alarmFloorWorkers }),
    startPeer(),
  ]);
  try {
    return {
      ...(await latenessFigures({ curfew, withoutExecutor, floorPath: alarmFloorPath, peer })),
      at_once: await atOnceFigures(curfew),
      // It needs no executor, and the alarms of this workerd are in a directory that can be read.
      waiting: await waitingFigures(withoutExecutor, directory),
    };
  } finally {
    await Promise.all([withoutExecutor.dispose(), peer.close()]);
    rmSync(directory, { recursive: true, force: true });
  }
}

const ROWS = {
  floor: "floor: an alarm",
  run: "a run's timeout",
  call: "a call's timeout",
  floor_executor_gone: "without an executor: floor",
  call_executor_gone: "without an executor: a call's timeout",
  at_once: `${WAITS} waits at once`,
};

export function timeTable(time: TimeFigures): (string | number)[][] {
  const line = (row: keyof typeof ROWS) => {
    const own = time[row];
    const inside = [own.late_p50_ms, own.late_p95_ms, own.late_p99_ms, own.late_max_ms];
    const client = [own.client_late_p50_ms, own.client_late_p95_ms, own.client_late_p99_ms, own.client_late_max_ms];
    return [ROWS[row], ...inside, ...client];
  };
  const rows = (["floor", "run", "call", "floor_executor_gone", "call_executor_gone", "at_once"] as const).map(line);
  return [["time, ms late", "p50", "p95", "p99", "max", "client p50", "p95", "p99", "max"], ...rows];
}
