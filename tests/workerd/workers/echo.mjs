// @ts-check
// A user's own Worker, bound to the executor as ECHO: what service_call reaches.
export default {
  /** @param {Request} request */
  async fetch(request) {
    const { pathname } = new URL(request.url);
    // To whom its body says, as a Worker with a backend of its own does.
    if (pathname === "/relay") return fetch((await request.json()).url);
    if (pathname === "/moved") return new Response(null, { status: 302, headers: { location: "/landed" } });
    if (pathname.startsWith("/status/")) return Response.json({ sorry: true }, { status: Number(pathname.slice(8)) });
    if (pathname === "/fail") return Response.json({ sorry: true }, { status: 404 });
    return Response.json({ method: request.method, path: pathname, body: await request.text() });
  },
};
