// An order of a shop: what was done is undone in reverse order when a later part fails.
import { quick, readDocument } from "../documents.mjs";
import { decideNext, ended } from "../waiting.mjs";
import { startShop } from "./services.mjs";

const purchase = readDocument("../../purchase.json", import.meta.url);
/** The review waits for 2 s instead of 4 hours. */
const quickPurchase = quick(purchase, { "/nodes/3/gate/timeout": "2s" });

const DONE = ["POST /charges", "POST /reservations"];
const UNDONE = ["POST /releases", "POST /refunds", "POST /reports"];

/**
 * @param {string} workflowId
 * @param {string} order_id
 * @param {number} amount
 * @returns {import("../example.mjs").Scenario<import("./services.mjs").Shop>["play"]}
 */
const order = (workflowId, order_id, amount) => async (client, shop) => {
  const { id: runId } = await client.start(workflowId, { input: { base_url: shop.url, order_id, amount } });
  await ended(client, runId);
  return { runId, facts: { ledger: shop.ledger, reported: shop.calls.at(-1)?.body } };
};

/** @type {import("../example.mjs").Example<import("./services.mjs").Shop>} */
export const example = {
  documents: [purchase, quickPurchase],
  startServices: startShop,
  scenarios: [
    {
      title: "An order that works: charged, reserved, shipped, and its end is reported.",
      play: order("purchase", "o-1", 12),
      expected: {
        status: "completed",
        output: { parcel: "parcel-o-1" },
        calls: [...DONE, "POST /shipments", "POST /reports"],
        facts: { ledger: { charged: 12, reserved: 1, shipped: 1 }, reported: { order: "o-1", status: "completed" } },
      },
    },
    {
      title: "Shipping refuses an order that is paid: the stock is released, then the card is refunded.",
      services: { shipping: "refuses" },
      play: order("purchase", "o-2", 30),
      expected: {
        status: "failed",
        output: null,
        calls: [...DONE, "POST /shipments", ...UNDONE],
        facts: { ledger: { charged: 0, reserved: 0, shipped: 0 }, reported: { order: "o-2", status: "failed" } },
      },
    },
    {
      title: "No person reviews a large order in time (2 s here, 4 h in the document): nothing is shipped, everything is undone.",
      play: order("purchase-quick", "o-3", 5_000),
      expected: {
        status: "failed",
        output: null,
        calls: [...DONE, ...UNDONE],
        facts: { ledger: { charged: 0, reserved: 0, shipped: 0 }, reported: { order: "o-3", status: "failed" } },
      },
    },
    {
      title: "A person reviews a large order: it is shipped.",
      play: async (client, shop) => {
        const { id: runId } = await client.start("purchase", { input: { base_url: shop.url, order_id: "o-4", amount: 5_000 } });
        await decideNext(client.as("bob"), runId, "review", { choice: "ship", comment: "a customer for ten years" });
        await ended(client, runId);
        return { runId, facts: { ledger: shop.ledger, reported: shop.calls.at(-1)?.body } };
      },
      expected: {
        status: "completed",
        output: { parcel: "parcel-o-4" },
        calls: [...DONE, "POST /shipments", "POST /reports"],
        facts: { ledger: { charged: 5_000, reserved: 1, shipped: 1 }, reported: { order: "o-4", status: "completed" } },
      },
    },
  ],
};
