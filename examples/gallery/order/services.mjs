// A shop: payment, stock and shipping. It counts what is charged, reserved and shipped, so that a demonstration can show that nothing is
// left of an order that was undone.
import { startService } from "../service.mjs";

/**
 * @typedef {import("../service.mjs").Service & {ledger: {charged: number, reserved: number, shipped: number}}} Shop
 */

/** @param {{shipping?: "works" | "refuses"}} [options] @returns {Promise<Shop>} */
export async function startShop({ shipping = "works" } = {}) {
  const ledger = { charged: 0, reserved: 0, shipped: 0 };
  /** @type {Map<string, number>} */
  const charges = new Map();
  const service = await startService({
    "POST /charges": ({ order, amount }) => {
      const id = `charge-${order}`;
      charges.set(id, amount);
      ledger.charged += amount;
      return { status: 201, body: { id } };
    },
    "POST /refunds": ({ charge }) => {
      ledger.charged -= charges.get(charge) ?? 0;
      return { status: 201, body: { id: `refund-of-${charge}` } };
    },
    "POST /reservations": ({ order }) => {
      ledger.reserved += 1;
      return { status: 201, body: { id: `reservation-${order}` } };
    },
    "POST /releases": ({ reservation }) => {
      ledger.reserved -= 1;
      return { body: { released: reservation } };
    },
    "POST /shipments": ({ order }) => {
      // 409 is an answer, not a fault: Curfew does not try it again.
      if (shipping === "refuses") return { status: 409, body: { error: "no carrier goes there" } };
      ledger.shipped += 1;
      return { status: 201, body: { id: `parcel-${order}` } };
    },
    "POST /returns": ({ parcel }) => {
      ledger.shipped -= 1;
      return { body: { returned: parcel } };
    },
    "POST /reports": () => ({ status: 202 }),
  });
  return { ...service, ledger };
}
