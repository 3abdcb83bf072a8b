// @ts-check
// A Worker that is bound to Curfew and calls what it is asked for: {create | get, method?, args?}, or {api: {method, path, body?}}.
export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const { create, get, method, args = [], api } = await request.json();
    try {
      if (api) {
        const { path, method, body } = api;
        return await env.CURFEW.request(new Request(`http://curfew${path}`, { method, body: body === undefined ? null : JSON.stringify(body) }));
      }
      using run = create ? await env.CURFEW.create(create) : await env.CURFEW.get(get);
      if (method === "subscribe") return new Response(await run.subscribe(...args));
      const value = method ? await run[method](...args) : null;
      return Response.json({ id: await run.id, value });
    } catch (error) {
      const { name, message, code, status } = /** @type {any} */ (error);
      return Response.json({ thrown: { name, message, code, status } });
    }
  },
};
