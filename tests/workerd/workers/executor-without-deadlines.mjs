// @ts-check
// An executor without deadlines. It reports an order `answer_after_ms` after it came, according to the order's input, or never.
import { serve } from "../../../src/worker/platform/executor_server.mjs";

/** @param {any} order */
async function execute({ token_id, epoch, input }) {
  // A pending timer keeps the runtime from detecting that this promise never resolves.
  if (input.answer_after_ms === undefined) await new Promise(() => setInterval(() => {}, 1000));
  await new Promise((resolve) => setTimeout(resolve, input.answer_after_ms));
  const steps = [{ ref: "work", status: "completed", attempts: 1, duration_ms: input.answer_after_ms }];
  return JSON.stringify({ token_id, epoch, status: "completed", output: "from the stand-in", steps });
}

/** @type {import("../../../src/worker/platform/executor_server.mjs").Executor} */
const executor = {
  execute: (id, order, sink) => execute(JSON.parse(order)).then((report) => sink.report(id, report), sink.fail),
  notify: (_id, _order, sink) => sink.fail("no notifications here"),
  cancel: () => {},
};

export default {
  /** @param {Request} request */
  fetch: (request) => serve(request, executor, new Set(), () => {}),
};
