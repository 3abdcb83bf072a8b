// kill -9 under load: 50 runs are in flight while the process is killed and restarted with the same storage.
// At the end every run has ended with the right output, and the peer got exactly the expected requests.
//
//   CURFEW_CRASH_KILLS=3    number of kills
//   CURFEW_CRASH_SEED=...   the seed of the plan; it is printed
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as elapse } from "node:timers/promises";
import { until } from "../workerd/poll.ts";
import { Client, WAIT_MS } from "./client.ts";
import { startRunPool } from "./run-pool.ts";
import { between } from "./seeded-random.ts";
import { checkRuns, debugReport, type StartedRun } from "./run-checks.ts";
import { endingKinds } from "./endings.ts";
import { workflowKinds } from "./workflows.ts";
import { startRecordingPeer } from "./recording-peer.ts";
import { checkMetrics } from "./metrics-check.ts";
import { startProcess, type CurfewProcess } from "./process.ts";

const KILLS = Number(process.env["CURFEW_CRASH_KILLS"] ?? "3");
const SEED = Number(process.env["CURFEW_CRASH_SEED"] ?? Math.floor(Math.random() * 1_000_000));
const IN_FLIGHT = 50;
/**
 * A token fails at its sixth loss, or after three rounds without a claim. Both are documented behaviour. So kills come in bursts,
 * and after each burst the process runs until the affected runs have ended.
 */
const BURST = 3;

/** Shorter than the defaults, so that the test does not take minutes. */
const VARS = {
  CURFEW_QUEUE: "on",
  CURFEW_PUBLIC_URL: "http://curfew.example",
  CURFEW_WATCH_MS: "2000",
  CURFEW_RING_MS: "2000",
  CURFEW_CLAIM_MS: "10000",
  CURFEW_HEARTBEAT_MS: "500",
  CURFEW_SILENCE_MS: "3000",
  CURFEW_RETRY_DELAY_MS: "100",
  // Callbacks arrive as soon as the process is up again.
  CURFEW_SUSPEND_MS: "120000",
};

const startedAt = Date.now();
const log = (text: string): void => console.log(`[crash] ${((Date.now() - startedAt) / 1000).toFixed(1)} s: ${text}`);
log(`seed ${SEED}, ${KILLS} kills (repeat with CURFEW_CRASH_SEED=${SEED} CURFEW_CRASH_KILLS=${KILLS})`);

const client = new Client();
const peer = await startRecordingPeer({
  delayMs: (step) => between(SEED, step, 20, 500),
  deliverCallback: (url, effect) => void client.sendOnce("POST", new URL(url).pathname, { output: effect }).catch((error) => log(String(error))),
});
const directory = mkdtempSync(join(tmpdir(), "curfew-crash-"));
const kinds = [...workflowKinds(), ...endingKinds()];
const kills: string[] = [];
/** Requests of compensations and end handlers that were open when the process was killed. */
let interruptedEndings = 0;

let instance: CurfewProcess = await startProcess(directory, VARS);
client.url = instance.url;
for (const { documents } of kinds) {
  for (const document of documents) await client.expect([201], "PUT", `/v1/workflows/${document.id}`, document);
}

const pool = startRunPool({ client, peer, kinds, seed: SEED, inFlight: IN_FLIGHT, unpolled: 0.5, continues: () => kills.length < KILLS });
while (kills.length < KILLS) {
  // Some processes are killed while they still recover from the previous kill.
  const lasts = between(SEED, `life ${kills.length}`, 150, 4_000);
  await elapse(lasts);
  await until("an open request", () => peer.open() > 0);
  const words = `kill ${kills.length + 1} after ${lasts} ms: ${pool.live.size} runs in flight, ${peer.open()} requests open`;
  interruptedEndings += peer.openOfEndings();
  client.url = undefined;
  await instance.kill();
  kills.push(`${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  log(words);
  instance = await startProcess(directory, VARS);
  client.url = instance.url;
  if (kills.length % BURST > 0) continue;
  const affected = [...pool.live];
  await until("the affected runs to end", () => affected.every((run) => !pool.live.has(run)), 2 * WAIT_MS);
}
await pool.done;
log(`all ${pool.runs.length} runs are done, ${pool.unfinished.size} of them unfinished`);

const wrong = new Map<StartedRun, string[]>([...pool.unfinished].map(([run, why]) => [run, [why]]));
const sum = { requests: 0, repeated: 0, undone: 0, endings: 0 };
for (const [run, { violations, requests, repeated, undone }] of await checkRuns(pool.runs, client, peer)) {
  sum.requests += requests;
  sum.repeated += repeated;
  sum.undone += undone;
  sum.endings += run.kind.ending ? 1 : 0;
  if (violations.length > 0) wrong.set(run, [...(wrong.get(run) ?? []), ...violations]);
}
const wrongMetrics = await checkMetrics(pool.runs, client, instance);
for (const violation of wrongMetrics) console.error(`[crash] ${violation}`);
for (const [run, violations] of wrong) {
  console.error(`[crash] run ${run.id} (${run.kind.name}); seed ${SEED}, kills at ${kills.join(", ")}`);
  for (const violation of violations) console.error(`  ${violation}`);
  console.error(await debugReport(run, client, peer));
}
for (const { what, status, text } of client.serverErrors.slice(0, 10)) log(`status ${status}: ${what}: ${text}`);
await instance.stop();
await peer.close();

const words = [
  `${pool.runs.length} runs over ${KILLS} kills`,
  `${sum.requests} requests at the peer, ${sum.repeated} of them a second time`,
  `${sum.endings} runs ended with compensations and undid ${sum.undone} steps, ${interruptedEndings} of these calls were open at a kill`,
  `${client.repeated} client requests without a response, ${client.serverErrors.length} with an error`,
];
log(words.join("; "));
const longest = kinds.map(({ name }) => {
  const took = pool.runs.flatMap((run) => (run.kind.name === name ? (run.end?.duration_ms ?? []) : []));
  return `${name} ${(Math.max(0, ...took) / 1000).toFixed(1)} s`;
});
log(`the longest of each kind: ${longest.join(", ")}`);
if (wrong.size > 0 || wrongMetrics.length > 0) {
  log(`${wrong.size} runs and ${wrongMetrics.length} metrics have violations; seed ${SEED}; their storage is kept: ${directory}`);
  process.exitCode = 1;
} else {
  rmSync(directory, { recursive: true, force: true });
  log("every run ended as expected, and the metrics say what happened");
}
