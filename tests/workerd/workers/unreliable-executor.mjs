// @ts-check
// Stands in for an executor that is killed in the middle of its work: the first order of each `key` of an input breaks the
// connection, answers garbage, or hangs, as the input's `mishap` says; the orders after it are done.
import { serve } from "../../../src/worker/platform/executor_server.mjs";

/** @type {Set<string>} */
const met = new Set();

/** @param {any} order @returns {Promise<string>} */
async function executed({ token_id, epoch, input }) {
  const { key, mishap } = input;
  if (met.has(key)) return JSON.stringify({ token_id, epoch, status: "completed", output: `attempt ${epoch}`, steps: [] });
  met.add(key);
  if (mishap === "garbage") return "<html>502</html>";
  if (mishap === "other") return JSON.stringify({ token_id: "t999", epoch: 7, status: "completed", steps: [] });
  if (mishap === "break") throw new Error("killed");
  // With a timer pending the runtime cannot tell that this order will never be answered.
  await new Promise(() => setInterval(() => {}, 1000));
  return "";
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
