// @ts-check
// An executor of a build without heartbeats and progress: it announces neither, and reports each order `answer_after_ms` after it
// came, according to the order's input.

/** @param {string} order */
async function report(order) {
  const { token_id, epoch, input } = JSON.parse(order);
  await new Promise((resolve) => setTimeout(resolve, input.answer_after_ms));
  return JSON.stringify({ token_id, epoch, status: "completed", output: "from an older build", steps: [] });
}

export default {
  /** @param {Request} request */
  async fetch(request) {
    if (request.headers.get("upgrade") !== "websocket") return new Response(await report(await request.text()));
    const { 0: theirs, 1: ours } = new WebSocketPair();
    ours.addEventListener("message", async ({ data }) => ours.send(`${await report(String(data))}\n`));
    ours.accept();
    return new Response(null, { status: 101, webSocket: theirs });
  },
};
