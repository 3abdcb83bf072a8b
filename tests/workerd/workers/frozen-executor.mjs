// @ts-check
// Stands in for an executor that freezes: it accepts the first conversation of each `key` and is never heard of again. The ones
// after it are answered.
import { HEARTBEAT_HEADER } from "../../../src/worker/platform/executor_client.mjs";

/** @type {Set<string>} */
const met = new Set();

export default {
  /** @param {Request} request */
  fetch(request) {
    const { 0: theirs, 1: ours } = new WebSocketPair();
    ours.addEventListener("message", ({ data }) => {
      const { token_id, epoch, input } = JSON.parse(String(data));
      // With a timer pending the runtime cannot tell that this order will never be answered.
      if (!met.has(input.key)) return void setInterval(() => met.add(input.key), 100);
      ours.send(`${JSON.stringify({ token_id, epoch, status: "completed", output: `attempt ${epoch}`, steps: [] })}\n`);
    });
    ours.accept();
    const headers = { [HEARTBEAT_HEADER]: request.headers.get(HEARTBEAT_HEADER) ?? "" };
    return new Response(null, { status: 101, webSocket: theirs, headers });
  },
};
