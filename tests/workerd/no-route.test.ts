// A deployment without a binding: tokens wait for a deployment that has it, and fail with what to configure.
import assert from "node:assert/strict";
import { test } from "node:test";
import { oneTask, set } from "./document-builders.ts";
import { startCurfew, type CurfewOptions } from "./harness.ts";
import { until } from "./poll.ts";

const QUICK = { CURFEW_PENDING_MS: "100", CURFEW_NO_ROUTE_MS: "600" };

for (const [binding, dispatch, vars] of [
  ["EXECUTOR", "direct", QUICK],
  ["EXECUTOR", "queue", { ...QUICK, CURFEW_QUEUE: "on" }],
  ["TASK_QUEUE", "queue", { ...QUICK, CURFEW_QUEUE: "on" }],
] as const) {
  test(`without ${binding} tasks of the lane ${dispatch} wait and fail`, async () => {
    const options: CurfewOptions = { vars, without: [binding] };
    const curfew = await startCurfew(options);
    try {
      const document = oneTask([set({ x: 1 })], { task: { dispatch } });
      await curfew.store(document);
      const id = await curfew.start(document.id);
      const waiting = await until("the token to wait", async () => (await curfew.tokens(id))[0]);
      assert.deepEqual([waiting.status, waiting.reason, waiting.epoch], ["pending", "no_route", 0]);
      const run = await curfew.ended(id);
      assert.equal(run.status, "failed");
      assert.equal(run.error?.code, "no_route");
      assert.ok(run.error?.message.includes(binding), run.error?.message);
      const [token] = await curfew.tokens(id);
      assert.deepEqual([token?.status, token?.reason, token?.epoch], ["failed", "no_route", 0]);
      assert.equal((await curfew.events(id, "dispatch_rung_again")).length, 1);
      assert.ok(run.ended_at! - run.started_at >= 600);
      // Tasks that need no executor are not delayed.
      const inline = await curfew.runToEnd(oneTask([set({ x: 1 })]));
      assert.equal(inline.status, "completed");
    } finally {
      await curfew.dispose();
    }
  });
}
