// @ts-check
// What the floor's steps call: the trivial work of an update_context action, by hand.
export default {
  /** @param {Request} request */
  async fetch(request) {
    const { input } = /** @type {{input: {node: number}}} */ (await request.json());
    return Response.json({ output: { node: input.node } });
  },
};
