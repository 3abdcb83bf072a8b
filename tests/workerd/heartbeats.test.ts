// Supervision of claimed attempts: an attempt with heartbeats is left alone, an attempt without them is lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { freshId, oneRequest } from "./document-builders.ts";
import { startCurfew, type Curfew } from "./harness.ts";
import { startPeer, type Peer } from "./peer.ts";

const SILENCE_MS = 1_500;

let curfew: Curfew;
/** Its consumers send no heartbeats, as if they had crashed. */
let withoutHeartbeats: Curfew;
let peer: Peer;
before(async () => {
  const vars = { CURFEW_QUEUE: "on", CURFEW_SILENCE_MS: String(SILENCE_MS) };
  [curfew, withoutHeartbeats, peer] = await Promise.all([
    startCurfew({ vars: { ...vars, CURFEW_HEARTBEAT_MS: "200" } }),
    startCurfew({ vars: { ...vars, CURFEW_HEARTBEAT_MS: "60000" } }),
    startPeer(),
  ]);
});
after(() => Promise.all([curfew.dispose(), withoutHeartbeats.dispose(), peer.close()]));

test("a long task with heartbeats is never considered lost", async () => {
  const run = await curfew.runToEnd(oneRequest(`${peer.url}/slow/${3 * SILENCE_MS}`, { task: { dispatch: "queue" } }));
  assert.equal(run.status, "completed", JSON.stringify(run.error));
  assert.deepEqual((await curfew.tokens(run.id)).map(({ lane, epoch, status }) => [lane, epoch, status]), [["queue", 1, "completed"]]);
  assert.deepEqual(await curfew.events(run.id, "attempt_reaped"), []);
});

test("a task without heartbeats is lost after the configured time", async () => {
  const run = await withoutHeartbeats.runToEnd(oneRequest(`${peer.url}/hang/${freshId("h")}`, { task: { dispatch: "queue" } }));
  assert.deepEqual([run.status, run.error?.code], ["failed", "attempt_reaped"]);
  const [token] = await withoutHeartbeats.tokens(run.id);
  assert.deepEqual([token?.status, token?.reason, token?.epoch], ["failed", "timeout_reaped_by_watchdog", 2]);
  const after = token!.ended_at! - token!.started_at!;
  assert.ok(after >= SILENCE_MS && after < 3 * SILENCE_MS, `after ${after} ms`);
  assert.equal((await withoutHeartbeats.events(run.id, "attempt_reaped")).length, 1);
});
