// @ts-check
// A Worker that is bound to Curfew and calls what it is asked for: {create | get, method?, args?}, {api: {method, path, body?}}, {fetched: path}, or
// {get, cancelled: true} for a subscription that is cancelled.
export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const { create, get, method, args = [], api, fetched, cancelled } = await request.json();
    try {
      if (fetched) return await env.CURFEW.fetch(`http://curfew${fetched}`);
      if (api) {
        const { path, method, body } = api;
        return await env.CURFEW.request(new Request(`http://curfew${path}`, { method, body: body === undefined ? null : JSON.stringify(body) }));
      }
      using run = create ? await env.CURFEW.create(create) : await env.CURFEW.get(get);
      if (cancelled) {
        const reader = (await run.subscribe()).getReader();
        const { value } = await reader.read();
        await reader.cancel();
        return Response.json({ first: new TextDecoder().decode(value) });
      }
      if (method === "subscribe") return new Response(await run.subscribe(...args));
      const value = method ? await run[method](...args) : null;
      return Response.json({ id: await run.id, value });
    } catch (error) {
      const { name, message, code, status } = /** @type {any} */ (error);
      return Response.json({ thrown: { name, message, code, status } });
    }
  },
};
