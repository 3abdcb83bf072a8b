// What the examples wait for: the end of a run, a gate, any other condition.

/** @typedef {import("curfew/client").Client} Client */

const ENDED = ["completed", "failed", "timed_out", "cancelled"];
const LONG_POLL_MS = 20_000;

/**
 * Polls until `look` returns something other than undefined, null or false.
 * @template T
 * @param {string} what
 * @param {() => Promise<T> | T} look
 * @param {number} [deadlineMs]
 * @returns {Promise<NonNullable<Exclude<T, false>>>}
 */
export async function until(what, look, deadlineMs = 30_000) {
  const givenUpAt = Date.now() + deadlineMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== null && seen !== false) return /** @type {any} */ (seen);
    if (Date.now() > givenUpAt) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** The run, once it has ended. @param {Client} client @param {string} runId */
export function ended(client, runId) {
  const look = async () => {
    const run = await client.run(runId, { wait_ms: LONG_POLL_MS });
    return ENDED.includes(run.status) && run;
  };
  return until(`the end of run ${runId}`, look, 60_000);
}

/** The gate that a run has opened at a node. @param {Client} client @param {string} runId @param {string} nodeId */
export function openGate(client, runId, nodeId) {
  return until(`a gate of ${nodeId}`, async () => {
    const { items } = await client.gates({ limit: 1_000 });
    return items.find((gate) => gate.run_id === runId && gate.node_id === nodeId);
  });
}

/**
 * Waits for the gate of a node and decides it.
 * @param {Client} client that of the caller who decides
 * @param {string} runId
 * @param {string} nodeId
 * @param {Parameters<Client["decide"]>[2]} decision
 */
export async function decideNext(client, runId, nodeId, decision) {
  const gate = await openGate(client, runId, nodeId);
  await client.decide(runId, gate.id, decision);
  return gate;
}

/** What the callers have decided so far: node, choice and name. @param {Client} client @param {string} runId */
export async function decisionsOf(client, runId) {
  const { items } = await client.events(runId, { limit: 1_000 });
  return items.filter(({ kind }) => kind === "gate_decided").map(({ node_id, choice, by }) => [node_id ?? "the run", choice, by]);
}
