// @ts-check
// Stands in for the executor: one that has lost its clock. It knows no deadline, and answers an order when the order's own
// input says so, `answer_after_ms` after it came, or never. Its steps say that it was here.
import { serve } from "../../../src/worker/platform/executor_server.mjs";

/** @param {any} order */
async function executed({ token_id, epoch, input }) {
  // With a timer pending the runtime cannot tell that this order will never be answered.
  if (input.answer_after_ms === undefined) await new Promise(() => setInterval(() => {}, 1000));
  await new Promise((resolve) => setTimeout(resolve, input.answer_after_ms));
  const steps = [{ ref: "work", status: "completed", attempts: 1, duration_ms: input.answer_after_ms }];
  return JSON.stringify({ token_id, epoch, status: "completed", output: "from the stand-in", steps });
}

/** @type {import("../../../src/worker/platform/executor_server.mjs").Executor} */
const executor = {
  execute: (id, order, sink) => executed(JSON.parse(order)).then((report) => sink.report(id, report), sink.fail),
  cancel: () => {},
};

export default {
  /** @param {Request} request */
  fetch: (request) => serve(request, executor, new Set(), () => {}),
};
