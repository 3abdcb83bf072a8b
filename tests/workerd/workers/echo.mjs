// @ts-check
// A user's own Worker, bound to the executor as ECHO: what service_call reaches.
export default {
  /** @param {Request} request */
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/fail") return Response.json({ sorry: true }, { status: 404 });
    return Response.json({ method: request.method, path: pathname, body: await request.text() });
  },
};
