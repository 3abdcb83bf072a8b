// A job of every night: ordered once a day, asked for with growing pauses, given up in an orderly way.
import { readDocument } from "../documents.mjs";
import { ended } from "../waiting.mjs";
import { startExports } from "./services.mjs";

/** The pauses that poll-until-ready makes, in milliseconds. */
const PAUSES_MS = [100, 200, 400, 800, 1_000];
const POLL = "GET /jobs/export-2026-11-01";

/**
 * The event of a night, published by a cron that fires twice.
 * @param {import("curfew/client").Client} client
 * @param {import("../service.mjs").Service} exports
 */
async function begin(client, { url }) {
  // A day of another demonstration would be the same event.
  const key = `2026-11-01:${new URL(url).port}:${Date.now()}`;
  const payload = { base_url: url, day: "2026-11-01" };
  const answers = [await client.publish("night.began", payload, { key }), await client.publish("night.began", payload, { key })];
  const runs = answers.flatMap((answer) => answer.runs).filter(({ workflow_id }) => workflow_id === "nightly-export");
  const runId = runs[0]?.id;
  if (runId === undefined) throw new Error("the event started no run");
  await ended(client, runId);
  const { items } = await client.tokens(`${runId}~t2`, { limit: 1_000 });
  const pauses = items.filter(({ node_id }) => node_id === "pause");
  // A pause may be late on a busy machine, and never early.
  const lengths = pauses.map(({ created_at, ended_at }, index) => Math.min((ended_at ?? created_at) - created_at, PAUSES_MS[index] ?? 0));
  return { runId, facts: { runs: new Set(runs.map(({ id }) => id)).size, pauses: lengths } };
}

/** @type {import("../example.mjs").Example<import("../service.mjs").Service>} */
export const example = {
  documents: [readDocument("../../poll-until-ready.json", import.meta.url), readDocument("./nightly-export.json", import.meta.url)],
  startServices: startExports,
  scenarios: [
    {
      title: "The export is ready at the third question. The cron fired twice, and there is one run.",
      services: { readyAfter: 3 },
      play: begin,
      expected: {
        status: "completed",
        output: { outcome: "loaded", rows: 4_711 },
        calls: ["POST /jobs", POLL, POLL, POLL, "POST /loads"],
        facts: { runs: 1, pauses: PAUSES_MS.slice(0, 2) },
      },
    },
    {
      title: "The export is never ready: after six questions there is an alarm.",
      services: { readyAfter: 1_000 },
      play: begin,
      expected: {
        status: "completed",
        output: { outcome: "late" },
        calls: ["POST /jobs", POLL, POLL, POLL, POLL, POLL, POLL, "POST /alarms"],
        facts: { runs: 1, pauses: PAUSES_MS },
      },
    },
  ],
};
