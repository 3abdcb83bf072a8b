// The order in virtual time, with `curfew/testing`: no service runs, four hours take no time, and crashes happen at every step.
import assert from "node:assert/strict";
import { test } from "node:test";
import { curfewTest, expectRun, type SeenRun } from "curfew/testing";
import { readDocument } from "../documents.mjs";

/** What the shop's services answer. */
const created = (id: string) => ({ result: { status: 201, headers: {}, body: { id } }, after: "300ms" });
const shop = curfewTest({ workflow: readDocument("../../purchase.json", import.meta.url) }).mock(
  { node: "charge", ...created("charge-1") },
  { node: "reserve", ...created("reservation-1") },
  { node: "ship", ...created("parcel-1") },
  { node: "ship~compensate", ...created("return-1") },
  { node: "reserve~compensate", ...created("release-1") },
  { node: "charge~compensate", ...created("refund-1") },
  { node: "on_end~1", result: { status: 202, headers: {}, body: null } },
);
const order = { base_url: "https://shop.example", order_id: "o-1", amount: 12 };
const largeOrder = { ...order, amount: 5_000 };

/** What the shop hears of the end. */
const reported = (run: SeenRun) => (run.callsOf("on_end~1").at(-1)?.request as any).body;
/** Calls that a peer which honours `Idempotency-Key` takes for different ones. */
const distinct = (run: SeenRun, node: string) => new Set(run.callsOf(node).map(({ idempotency_key }) => idempotency_key)).size;

test("a small order is charged, reserved and shipped, and its end is reported", () => {
  const run = shop.start(order).finish();
  expectRun(run).toHaveCompleted({ parcel: "parcel-1" });
  assert.deepEqual(run.visited, ["charge", "reserve", "ship"]);
  assert.deepEqual(run.calls.map(({ request }) => (request as any).url.split("/").at(-1)), ["charges", "reservations", "shipments", "reports"]);
  assert.deepEqual(reported(run), { order: "o-1", status: "completed" });
  assert.equal(run.at_ms, 900);
});

test("a large order waits for a review, and is shipped when it is approved", () => {
  const run = shop.start(largeOrder).advance("3h");
  expectRun(run).toWaitFor("review");
  expectRun(run).not.toHaveCalled("ship");
  run.decide("review", "ship").finish();
  expectRun(run).toHaveCompleted({ parcel: "parcel-1" });
});

test("a review that finds fraud undoes the order", () => {
  const run = shop.start(largeOrder).advance("1m").decide("review", "fraud").finish();
  expectRun(run).toHaveFailed();
  expectRun(run).toHaveVisited(["review", "refuse"]);
  expectRun(run).toHaveCompensated(["reserve", "charge"]);
  assert.deepEqual(reported(run), { order: "o-1", status: "failed" });
});

test("nobody decides for 7 days: after 4 hours the order is undone", () => {
  const run = shop.start(largeOrder).advance("7d");
  expectRun(run).toHaveFailed("gate_timeout");
  expectRun(run).toHaveTimedOut("review");
  expectRun(run).not.toHaveCalled("ship");
  expectRun(run).toHaveCompensated(["reserve", "charge"]);
  const hour = 3_600_000;
  assert.ok(run.run.duration_ms > 4 * hour && run.run.duration_ms < 4 * hour + 5_000, run.timeline());
});

test("a card that is declined ends the order before anything else was done", () => {
  const run = shop.mock({ node: "charge", fail: { class: "bad_request", code: "http_402", message: "card declined" } }).start(order).finish();
  expectRun(run).toHaveFailed("http_402");
  expectRun(run).toHaveCalled("charge", 1);
  expectRun(run).not.toHaveCalled("reserve");
  expectRun(run).toHaveCompensated([]);
});

test("a bank that is down is asked again", () => {
  const run = shop.mock({ node: "charge", times: 2, after: "1s", fail: "server_error" }).start(order).finish();
  expectRun(run).toHaveCompleted();
  expectRun(run).toHaveCalled("charge", 3);
  assert.equal(distinct(run, "charge"), 1);
});

test("stock that is gone after the payment: the card is refunded", () => {
  const run = shop.mock({ node: "reserve", fail: { class: "not_found", code: "sold_out" } }).start(order).finish();
  expectRun(run).toHaveFailed("sold_out");
  expectRun(run).toHaveCompensated(["charge"]);
  expectRun(run).toHaveCalled("charge~compensate", 1);
  assert.deepEqual((run.callsOf("charge~compensate")[0]!.request as any).body, { charge: "charge-1" });
});

test("shipping that hangs is cut, and the order is undone in reverse order", () => {
  const run = shop.mock({ node: "ship", hang: true }).start(order).finish();
  expectRun(run).toHaveFailed("execution_timeout");
  expectRun(run).toHaveTimedOut("ship");
  expectRun(run).toHaveCompensated(["reserve", "charge"]);
  assert.ok(run.run.duration_ms < 60_000, run.timeline());
});

test("an order that is cancelled while its parcel is on the way is sent back", () => {
  const run = shop.mock({ node: "ship", ...created("parcel-1"), after: "4s" }).start(order).advance("2s").cancel("changed my mind").finish();
  expectRun(run).toHaveStatus("cancelled");
  expectRun(run).toHaveCompensated(["ship", "reserve", "charge"]);
});

test("crashes at each step: the card is charged once, and the order is completed or undone", () => {
  const kit = shop.people({ gate: "review", after: "2h", choice: "ship" });
  const { seeds, faults, statuses } = kit.everySeed(60, { input: largeOrder, faults: { crash_before_commit: 10, crash_after_commit: 10, eviction: 20 } }, (run) => {
    assert.ok(distinct(run, "charge") <= 1, "the card is charged twice");
    assert.ok(distinct(run, "ship") <= 1, "two parcels");
    // Where every answer was lost with its executor until the node's time was over, nothing is known to undo: the report of the end
    // is what the shop looks into.
    const isPaid = run.tokens.some(({ node_id, status, compensation }) => node_id === "charge" && status === "completed" && !compensation);
    if (isPaid && run.status !== "completed") assert.ok(run.compensated.includes("charge"), "money was taken, and nothing was shipped");
    assert.equal(distinct(run, "on_end~1"), 1, "the shop hears of the end once");
  });
  assert.equal(seeds, 60);
  assert.ok(faults > 100 && statuses.completed! > 30, JSON.stringify({ faults, statuses }));
});

test("whatever goes wrong around it, no customer pays twice", () => {
  shop.everySeed(60, { input: order }, (run) => assert.ok(distinct(run, "charge") <= 1, "the card is charged twice"));
});
