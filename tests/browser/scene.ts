// A server with runs in every state, for the tests and the screenshots.
import type { Client } from "../../client/index.ts";
import { startPeer, type Peer } from "../workerd/peer.ts";
import { until } from "../workerd/poll.ts";
import { LONG_RUN } from "./pages.ts";
import { all, stock, wordy } from "./workflows.ts";

export { startPeer, until, type Peer };

export async function storeAll(client: Client): Promise<void> {
  await client.put("actions", stock);
  for (const workflow of all) await client.put("workflows", workflow);
}

/** Waits until a run has one of these statuses. */
export const reaches = (client: Client, run: string, ...statuses: string[]) =>
  until(`run ${run} to be ${statuses.join(" or ")}`, async () => {
    const found = await client.run(run);
    return statuses.includes(found.status) && found;
  });

/** Three failures in a row open it. */
export async function openBreaker(client: Client, peer: Peer): Promise<void> {
  peer.route("/down", () => ({ status: 503, body: { error: "closed for repairs" } }));
  for (const index of [1, 2, 3]) {
    await client.start("guarded", { run_id: `guarded-${index}`, input: { base: peer.url } });
    await reaches(client, `guarded-${index}`, "failed");
  }
  await until("the breaker to be open", async () => (await client.breakers({})).items.some(({ state }) => state === "open"));
}

/** Starts a run of each workflow and waits until each stands where it is to be seen. */
export async function playScene(client: Client, peer: Peer): Promise<void> {
  peer.route("/charge", () => ({ status: 422, body: { error: "the card was declined" } }));
  peer.release("undo");
  await storeAll(client);
  const base = peer.url;
  await openBreaker(client, peer);
  await Promise.all([
    client.start("steps", { run_id: "steps-live", input: { base } }),
    client.start("parked", { run_id: "parked-1", input: { base } }),
    client.start("failing", { run_id: "failing-1", input: { base } }),
    client.start("timing", { run_id: "timing-1", input: { base } }),
    client.start("loop", { run_id: "loop-1", input: {} }),
    client.start("wide", { run_id: "wide-40", input: { items: Array.from({ length: 40 }, (_, index) => index) } }),
    client.start("large-30", { run_id: "large-1", input: {} }),
    client.start("fork", { run_id: "fork-1", input: {} }),
    client.start("escalated", { run_id: "escalated-1", input: { base } }),
    client.start(wordy.id, { run_id: LONG_RUN, input: { note: "\u202ePay?\n".repeat(40) } }),
    client.start("paperwork", { run_id: "paperwork-1", input: {} }),
    client.start("undone", { run_id: "undone-1", input: { base } }),
    client.start("review", { run_id: "review-1", input: { title: "A new chair", amount: 120 } }),
    client.start("review", { run_id: "review-2", input: { title: "Train to Ghent", amount: 86 } }),
  ]);
  await Promise.all([
    reaches(client, "parked-1", "paused"),
    reaches(client, "failing-1", "failed"),
    reaches(client, "undone-1", "failed"),
    reaches(client, "timing-1", "failed", "timed_out"),
    reaches(client, "wide-40", "completed"),
    ...["fork-1", "escalated-1", "paperwork-1", LONG_RUN].map((run) => reaches(client, run, "waiting")),
    reaches(client, "review-1", "waiting"),
    reaches(client, "review-2", "waiting"),
    until("the third step", async () => (await client.tokens("steps-live")).items.some(({ node_id, status }) => node_id === "third" && status === "executing")),
    // The list is about a second behind.
    until("the list of runs", async () => (await client.runs({ limit: 50 })).items.length >= 17),
    until("the list of gates", async () => (await client.gates({})).items.length >= 8),
  ]);
}
