// 200 runs in flight for five minutes: no response is an error, every run ends as expected, and the memory of workerd stops
// growing.
//
//   CURFEW_LOAD_SECONDS=300   how long runs are started; below 240 memory is only reported
//   CURFEW_LOAD_RUNS=200      number of concurrent runs
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "./client.ts";
import { startRunPool } from "./run-pool.ts";
import { between } from "./seeded-random.ts";
import { checkRuns } from "./run-checks.ts";
import { workflowKinds } from "./workflows.ts";
import { startRecordingPeer } from "./recording-peer.ts";
import { residentMiB, startProcess } from "./process.ts";

const SECONDS = Number(process.env["CURFEW_LOAD_SECONDS"] ?? "300");
const IN_FLIGHT = Number(process.env["CURFEW_LOAD_RUNS"] ?? "200");
const SEED = 1;
const SAMPLE_MS = 250;
/**
 * workerd keeps an idle object for 70 to 140 s before it frees it and the 150 to 350 KiB of its SQLite, so memory grows for that
 * long with every run. Growth after that is a leak.
 */
const SECONDS_TO_GROW = 200;
/** The allowed growth from the first to the last quarter of the remaining time. */
const GROWTH = 1.1;

/** The queue lane is off, the default: the local queue runs one batch at a time. */
const VARS = { CURFEW_PUBLIC_URL: "http://curfew.example" };

const log = (text: string): void => console.log(`[load] ${text}`);
const client = new Client();
const peer = await startRecordingPeer({
  // Slow enough that the machine is not the limit: with 200 runs in flight about 25 end per second. A growing rate would be
  // growing memory.
  delayMs: (step) => between(SEED, step, 1_000, 5_000),
  deliverCallback: (url, effect) => void client.sendOnce("POST", new URL(url).pathname, { output: effect }).catch((error) => log(String(error))),
});
const directory = mkdtempSync(join(tmpdir(), "curfew-load-"));
const kinds = workflowKinds().filter(({ name }) => !name.includes("queue"));
const instance = await startProcess(directory, VARS);
client.url = instance.url;
for (const { documents } of kinds) {
  for (const document of documents) await client.expect([201], "PUT", `/v1/workflows/${document.id}`, document);
}

interface Sample {
  at: number;
  mib: number;
  ended: number;
}
const samples: Sample[] = [];
const startedAt = Date.now();
const seconds = (): number => (Date.now() - startedAt) / 1000;
const pool = startRunPool({ client, peer, kinds, seed: SEED, inFlight: IN_FLIGHT, unpolled: 0, continues: () => seconds() < SECONDS });
const ended = (): number => pool.runs.length - pool.live.size;
const sampling = setInterval(() => {
  const mib = residentMiB(instance.workerdPid);
  if (mib !== undefined) samples.push({ at: seconds(), mib, ended: ended() });
}, SAMPLE_MS);
await pool.done;
clearInterval(sampling);
const took = seconds();

const problems = [...pool.unfinished].map(([run, why]) => `${run.id} (${run.kind.name}): ${why}`);
for (const { what, status, text } of client.serverErrors) problems.push(`status ${status}: ${what}: ${text}`);
if (client.repeated > 0) problems.push(`${client.repeated} requests got no response`);
for (const [run, { violations, repeated }] of await checkRuns(pool.runs, client, peer)) {
  for (const violation of violations) problems.push(`${run.id} (${run.kind.name}): ${violation}`);
  if (repeated > 0) problems.push(`${run.id} (${run.kind.name}): ${repeated} requests were repeated without a kill`);
}
await instance.stop();
await peer.close();
rmSync(directory, { recursive: true, force: true });

const durations = pool.runs.flatMap((run) => run.end?.duration_ms ?? []).sort((a, b) => a - b);
const share = (part: number): string => ((durations[Math.floor((durations.length - 1) * part)] ?? 0) / 1000).toFixed(2);
const requests = [...peer.requests.values()].reduce((sum, requests) => sum + requests.length, 0);
log(`${pool.runs.length} runs in ${took.toFixed(1)} s, ${IN_FLIGHT} at once: ${(pool.runs.length / took).toFixed(1)} runs/s, ${(requests / took).toFixed(0)} calls/s`);
log(`a run took ${share(0.5)} s in the middle, ${share(0.95)} s at 95 %, ${share(1)} s at most`);

const every = Math.max(1, Math.floor(samples.length / 15));
log(`memory of workerd: ${samples.filter((_, n) => n % every === 0).map(({ at, mib, ended }) => `${at.toFixed(0)} s ${mib.toFixed(0)} MiB ${ended} runs`).join(", ")}`);
const grown = samples.filter(({ at }) => at >= SECONDS_TO_GROW);
if (SECONDS >= SECONDS_TO_GROW + 40) {
  const quarter = Math.floor(grown.length / 4);
  const [first, last] = [grown.slice(0, quarter), grown.slice(-quarter)];
  const [before, after] = [first, last].map((part) => median(part.map(({ mib }) => mib)));
  const between = last.at(-1)!.ended - first[0]!.ended;
  log(`from ${SECONDS_TO_GROW} s on: ${before!.toFixed(0)} MiB at first, ${after!.toFixed(0)} MiB at last, ${between} runs later`);
  if (after! > before! * GROWTH) problems.push(`memory grew from ${before!.toFixed(0)} to ${after!.toFixed(0)} MiB after its time to grow`);
}
for (const problem of problems.slice(0, 20)) console.error(`[load] ${problem.slice(0, 2000)}`);
if (problems.length > 0) {
  log(`${problems.length} problems`);
  process.exitCode = 1;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
