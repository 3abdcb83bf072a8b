// The bank that pays what was approved.
import { startService } from "../service.mjs";

export const startBank = () => {
  let payments = 0;
  return startService({
    "POST /payments": () => {
      payments += 1;
      return { status: 201, body: { id: `payment-${payments}` } };
    },
  });
};
