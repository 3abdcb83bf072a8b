// @ts-check
// A step of the floor: the work of an update_context action, written by hand.
export default {
  /** @param {Request} request */
  async fetch(request) {
    const { input } = /** @type {{input: {node: number}}} */ (await request.json());
    return Response.json({ output: { node: input.node } });
  },
};
