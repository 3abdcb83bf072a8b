// 200 runs in flight for five minutes: nobody is answered with an error, every run ends as it should, and the memory of workerd
// comes to an end of its growth.
//
//   CURFEW_LOAD_SECONDS=300   for how long runs are begun; below 240 memory is only reported
//   CURFEW_LOAD_RUNS=200      how many at once
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "./client.ts";
import { gather } from "./crowd.ts";
import { between } from "./dice.ts";
import { account } from "./ledger.ts";
import { mix } from "./mix.ts";
import { startLedgerPeer } from "./peer.ts";
import { begin, residentMiB } from "./process.ts";

const SECONDS = Number(process.env["CURFEW_LOAD_SECONDS"] ?? "300");
const IN_FLIGHT = Number(process.env["CURFEW_LOAD_RUNS"] ?? "200");
const SEED = 1;
const SAMPLE_MS = 250;
/**
 * workerd keeps an idle object for 70 to 140 s before it lets go of it, and of the 150 to 350 KiB that its SQLite holds: memory
 * grows for that long with every run, whoever wrote it. What grows after that is never given back.
 */
const SECONDS_TO_GROW = 200;
/** How much more the last quarter of the rest may hold than its first. */
const GROWTH = 1.1;

/** The queue stays off, as in a deployment that does not ask for it: the local one runs one batch at a time. */
const VARS = { CURFEW_PUBLIC_URL: "http://curfew.example" };

const say = (words: string): void => console.log(`[load] ${words}`);
const client = new Client();
const peer = await startLedgerPeer({
  // Slow enough that the machine is not the measure: with 200 in flight some 25 runs end each second, all the time. A rate
  // that grows would be memory that grows.
  delayMs: (step) => between(SEED, step, 1_000, 5_000),
  bring: (url, effect) => void client.heard("POST", new URL(url).pathname, { output: effect }).catch((error) => say(String(error))),
});
const directory = mkdtempSync(join(tmpdir(), "curfew-load-"));
const kinds = mix().filter(({ name }) => !name.includes("queue"));
const life = await begin(directory, VARS);
client.url = life.url;
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
const crowd = gather({ client, peer, kinds, seed: SEED, inFlight: IN_FLIGHT, alone: 0, goesOn: () => seconds() < SECONDS });
const ended = (): number => crowd.runs.length - crowd.live.size;
const sampling = setInterval(() => {
  const mib = residentMiB(life.workerdPid);
  if (mib !== undefined) samples.push({ at: seconds(), mib, ended: ended() });
}, SAMPLE_MS);
await crowd.done;
clearInterval(sampling);
const took = seconds();

const problems = [...crowd.stuck].map(([run, why]) => `${run.id} (${run.kind.name}): ${why}`);
for (const { what, status, text } of client.serverErrors) problems.push(`answered with ${status}: ${what}: ${text}`);
if (client.repeated > 0) problems.push(`${client.repeated} requests got no answer`);
const unread = [...crowd.runs];
const read = async (): Promise<void> => {
  for (let run = unread.pop(); run !== undefined; run = unread.pop()) {
    const { violations, repeated } = await account(run, client, peer);
    for (const violation of violations) problems.push(`${run.id} (${run.kind.name}): ${violation}`);
    if (repeated > 0) problems.push(`${run.id} (${run.kind.name}): ${repeated} requests came twice, and nobody was killed`);
  }
};
await Promise.all(Array.from({ length: 8 }, read));
await life.stop();
await peer.close();
rmSync(directory, { recursive: true, force: true });

const durations = crowd.runs.flatMap((run) => run.end?.duration_ms ?? []).sort((a, b) => a - b);
const share = (part: number): string => ((durations[Math.floor((durations.length - 1) * part)] ?? 0) / 1000).toFixed(2);
const requests = [...peer.asked.values()].reduce((sum, asked) => sum + asked.length, 0);
say(`${crowd.runs.length} runs in ${took.toFixed(1)} s, ${IN_FLIGHT} at once: ${(crowd.runs.length / took).toFixed(1)} runs/s, ${(requests / took).toFixed(0)} calls/s`);
say(`a run took ${share(0.5)} s in the middle, ${share(0.95)} s at 95 %, ${share(1)} s at most`);

const every = Math.max(1, Math.floor(samples.length / 15));
say(`memory of workerd: ${samples.filter((_, n) => n % every === 0).map(({ at, mib, ended }) => `${at.toFixed(0)} s ${mib.toFixed(0)} MiB ${ended} runs`).join(", ")}`);
const grown = samples.filter(({ at }) => at >= SECONDS_TO_GROW);
if (SECONDS >= SECONDS_TO_GROW + 40) {
  const quarter = Math.floor(grown.length / 4);
  const [first, last] = [grown.slice(0, quarter), grown.slice(-quarter)];
  const [before, after] = [first, last].map((part) => median(part.map(({ mib }) => mib)));
  const between = last.at(-1)!.ended - first[0]!.ended;
  say(`from ${SECONDS_TO_GROW} s on: ${before!.toFixed(0)} MiB at first, ${after!.toFixed(0)} MiB at last, ${between} runs later`);
  if (after! > before! * GROWTH) problems.push(`memory grew from ${before!.toFixed(0)} to ${after!.toFixed(0)} MiB when it had had its time to`);
}
for (const problem of problems.slice(0, 20)) console.error(`[load] ${problem.slice(0, 2000)}`);
if (problems.length > 0) {
  say(`${problems.length} problems`);
  process.exitCode = 1;
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
