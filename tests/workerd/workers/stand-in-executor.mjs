// @ts-check
// Stands in for the executor: one that has lost its clock. It knows no deadline, and answers an order when the order's own
// input says so, `answer_after_ms` after it came, or never. Its steps say that it was here.

/** @param {any} order */
async function executed({ token_id, epoch, input }) {
  // With a timer pending the runtime cannot tell that this order will never be answered.
  if (input.answer_after_ms === undefined) await new Promise(() => setInterval(() => {}, 1000));
  await new Promise((resolve) => setTimeout(resolve, input.answer_after_ms));
  const steps = [{ ref: "work", status: "completed", attempts: 1, duration_ms: input.answer_after_ms }];
  return JSON.stringify({ token_id, epoch, status: "completed", output: "from the stand-in", steps });
}

export default {
  /** @param {Request} request */
  async fetch(request) {
    const orders = (await request.text()).split("\n").map((line) => executed(JSON.parse(line)));
    if (orders.length === 1) return new Response(await orders[0]);
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    const encoder = new TextEncoder();
    const written = orders.map(async (order) => writer.write(encoder.encode(`${await order}\n`)));
    Promise.all(written).then(() => writer.close());
    return new Response(readable);
  },
};
