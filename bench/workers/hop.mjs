// @ts-check
// The counterpart of Curfew's executor: a Worker between the floor's object and the Worker that does the step.
export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const response = await env.STEP.fetch("http://step/", { method: "POST", body: await request.text() });
    return new Response(await response.text());
  },
};
