// kill -9 in the middle of everything: 50 runs are in flight while the process is killed and started again on the same disk.
// In the end every run has reached its end, with the right output, and the peer was asked for what it should have been.
//
//   CURFEW_CRASH_KILLS=3    how often
//   CURFEW_CRASH_SEED=...   the plan to repeat; it is printed
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as elapse } from "node:timers/promises";
import { until } from "../workerd/poll.ts";
import { Client, PATIENCE_MS } from "./client.ts";
import { gather } from "./crowd.ts";
import { between } from "./dice.ts";
import { account, dossier, type Started } from "./ledger.ts";
import { mix } from "./mix.ts";
import { startLedgerPeer } from "./peer.ts";
import { begin, type Life } from "./process.ts";

const KILLS = Number(process.env["CURFEW_CRASH_KILLS"] ?? "3");
const SEED = Number(process.env["CURFEW_CRASH_SEED"] ?? Math.floor(Math.random() * 1_000_000));
const IN_FLIGHT = 50;
/**
 * A token is given up at its sixth loss, or after three rounds in which nobody claims it, and both are promised. So kills come in
 * bursts, and after each the process lives until what was hit has ended.
 */
const BURST = 3;

/** The watches as always, only shorter: a test that waits for them should not take minutes. */
const VARS = {
  CURFEW_QUEUE: "on",
  CURFEW_PUBLIC_URL: "http://curfew.example",
  CURFEW_WATCH_MS: "2000",
  CURFEW_RING_MS: "2000",
  CURFEW_CLAIM_MS: "10000",
  CURFEW_HEARTBEAT_MS: "500",
  CURFEW_SILENCE_MS: "3000",
  CURFEW_RETRY_DELAY_MS: "100",
  // A result is brought as soon as somebody lives to take it.
  CURFEW_SUSPEND_MS: "120000",
};

const startedAt = Date.now();
const say = (words: string): void => console.log(`[crash] ${((Date.now() - startedAt) / 1000).toFixed(1)} s: ${words}`);
say(`seed ${SEED}, ${KILLS} kills (repeat with CURFEW_CRASH_SEED=${SEED} CURFEW_CRASH_KILLS=${KILLS})`);

const client = new Client();
const peer = await startLedgerPeer({
  delayMs: (step) => between(SEED, step, 20, 500),
  bring: (url, effect) => void client.heard("POST", new URL(url).pathname, { output: effect }).catch((error) => say(String(error))),
});
const directory = mkdtempSync(join(tmpdir(), "curfew-crash-"));
const kinds = mix();
const kills: string[] = [];

let life: Life = await begin(directory, VARS);
client.url = life.url;
for (const { documents } of kinds) {
  for (const document of documents) await client.expect([201], "PUT", `/v1/workflows/${document.id}`, document);
}

const crowd = gather({ client, peer, kinds, seed: SEED, inFlight: IN_FLIGHT, alone: 0.5, goesOn: () => kills.length < KILLS });
while (kills.length < KILLS) {
  // Some lives are so short that they end while the last death is being made up for.
  const lasts = between(SEED, `life ${kills.length}`, 150, 4_000);
  await elapse(lasts);
  await until("a request that is under way", () => peer.open() > 0);
  const words = `kill ${kills.length + 1} after ${lasts} ms: ${crowd.live.size} runs in flight, ${peer.open()} requests open`;
  client.url = undefined;
  await life.kill();
  kills.push(`${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  say(words);
  life = await begin(directory, VARS);
  client.url = life.url;
  if (kills.length % BURST > 0) continue;
  const hit = [...crowd.live];
  await until("what the kills have hit to end", () => hit.every((run) => !crowd.live.has(run)), 2 * PATIENCE_MS);
}
await crowd.done;
say(`all ${crowd.runs.length} runs are accounted for, ${crowd.stuck.size} of them stuck`);

const wrong = new Map<Started, string[]>([...crowd.stuck].map(([run, why]) => [run, [why]]));
const sum = { requests: 0, repeated: 0 };
const unread = [...crowd.runs];
const read = async (): Promise<void> => {
  for (let run = unread.pop(); run !== undefined; run = unread.pop()) {
    const { violations, requests, repeated } = await account(run, client, peer);
    sum.requests += requests;
    sum.repeated += repeated;
    if (violations.length > 0) wrong.set(run, [...(wrong.get(run) ?? []), ...violations]);
  }
};
await Promise.all(Array.from({ length: 8 }, read));
for (const [run, violations] of wrong) {
  console.error(`[crash] run ${run.id} (${run.kind.name}); seed ${SEED}, kills at ${kills.join(", ")}`);
  for (const violation of violations) console.error(`  ${violation}`);
  console.error(await dossier(run, client, peer));
}
for (const { what, status, text } of client.serverErrors.slice(0, 10)) say(`answered with ${status}: ${what}: ${text}`);
await life.stop();
await peer.close();

const words = [
  `${crowd.runs.length} runs over ${KILLS} kills`,
  `${sum.requests} requests at the peer, ${sum.repeated} of them a second time`,
  `${client.repeated} requests of ours without an answer, ${client.serverErrors.length} with an error`,
];
say(words.join("; "));
const longest = kinds.map(({ name }) => {
  const took = crowd.runs.flatMap((run) => (run.kind.name === name ? (run.end?.duration_ms ?? []) : []));
  return `${name} ${(Math.max(0, ...took) / 1000).toFixed(1)} s`;
});
say(`the longest of each kind: ${longest.join(", ")}`);
if (wrong.size > 0) {
  say(`${wrong.size} runs broke a promise; seed ${SEED}; their disk is kept: ${directory}`);
  process.exitCode = 1;
} else {
  rmSync(directory, { recursive: true, force: true });
  say("every run ended as it should");
}
