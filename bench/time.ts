// The figures of time: how late deadlines are, a thousand of them at one moment, and what a month of waiting costs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { moduleWorker, startCurfew, type Curfew } from "../tests/workerd/harness.ts";
import { startPeer } from "../tests/workerd/peer.ts";
import { latenessFigures, ROUNDS } from "./lateness.ts";
import { atOnceFigures, waitingFigures, WAITS } from "./waits.ts";

const alarmFloorPath = "/__alarm-floor";

/** What the figures of time need in the workerd of the others. */
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
  console.log(`deadlines, ${ROUNDS} of each kind, ${WAITS} at once, and a wait of 30 days`);
  const directory = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  const executor = "bench/workers/executor-gone.mjs";
  const [bereft, peer] = await Promise.all([
    startCurfew({ executor, persistTo: directory, extraWorkers: alarmFloorWorkers }),
    startPeer(),
  ]);
  try {
    return {
      ...(await latenessFigures({ curfew, bereft, floorPath: alarmFloorPath, peer })),
      at_once: await atOnceFigures(curfew),
      // It needs no executor, and this one's alarms are in a directory that can be read.
      waiting: await waitingFigures(bereft, directory),
    };
  } finally {
    await Promise.all([bereft.dispose(), peer.close()]);
    rmSync(directory, { recursive: true, force: true });
  }
}

const ROWS = {
  floor: "floor: an alarm",
  run: "a run's limit",
  call: "a call's limit",
  floor_executor_gone: "executor gone: floor",
  call_executor_gone: "executor gone: a call's limit",
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

/** The lines of the table of goals. A floor that is itself tens of ms late was measured on a busy machine. */
export function timeGoals(time: TimeFigures): (string | number)[][] {
  const { floor, run, call, floor_executor_gone: floorGone, call_executor_gone: callGone } = time;
  return [
    [`${ROWS.run}: p99, ms later than the floor's`, run.late_p99_ms - floor.late_p99_ms, 5],
    [`${ROWS.call}: p99, ms later than the floor's`, call.late_p99_ms - floor.late_p99_ms, 5],
    [`${ROWS.call_executor_gone}: p99, ms later than the floor's`, callGone.late_p99_ms - floorGone.late_p99_ms, 5],
    [`${ROWS.at_once}: slowest, ms from the due moment to the client`, time.at_once.client_late_max_ms, 250],
    ["rows written while a run waits for 30 days", time.waiting.rows_while_it_waits, 0],
    ["ms from its alarm to the end of the wait", time.waiting.alarm_before_the_end_ms, 0],
  ];
}
