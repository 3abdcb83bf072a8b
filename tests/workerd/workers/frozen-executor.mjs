// @ts-check
// An executor that freezes: it accepts the first order of each `key` and never reports it. Later orders are reported.
import { HEARTBEAT_HEADER } from "../../../src/worker/platform/executor_client.mjs";

/** @type {Set<string>} */
const seenKeys = new Set();

export default {
  /** @param {Request} request */
  fetch(request) {
    const { 0: theirs, 1: ours } = new WebSocketPair();
    ours.addEventListener("message", ({ data }) => {
      const { token_id, epoch, input } = JSON.parse(String(data));
      // A pending timer keeps the runtime from detecting that this order is never reported.
      if (!seenKeys.has(input.key)) return void setInterval(() => seenKeys.add(input.key), 100);
      ours.send(`${JSON.stringify({ token_id, epoch, status: "completed", output: `attempt ${epoch}`, steps: [] })}\n`);
    });
    ours.accept();
    const headers = { [HEARTBEAT_HEADER]: request.headers.get(HEARTBEAT_HEADER) ?? "" };
    return new Response(null, { status: 101, webSocket: theirs, headers });
  },
};
