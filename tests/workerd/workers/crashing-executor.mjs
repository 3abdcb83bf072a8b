// @ts-check
// An executor that is killed during its work: the first order of each `key` of an input closes the connection, reports garbage, or
// hangs, as the input's `fault` says. Later orders complete.
import { serve } from "../../../src/worker/platform/executor_server.mjs";

/** @type {Set<string>} */
const seenKeys = new Set();

/** @param {any} order @returns {Promise<string>} */
async function execute({ token_id, epoch, input }) {
  const { key, fault } = input;
  if (seenKeys.has(key)) return JSON.stringify({ token_id, epoch, status: "completed", output: `attempt ${epoch}`, steps: [] });
  seenKeys.add(key);
  if (fault === "garbage") return "<html>502</html>";
  if (fault === "other") return JSON.stringify({ token_id: "t999", epoch: 7, status: "completed", steps: [] });
  if (fault === "break") throw new Error("killed");
  // A pending timer keeps the runtime from detecting that this promise never resolves.
  await new Promise(() => setInterval(() => {}, 1000));
  return "";
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
