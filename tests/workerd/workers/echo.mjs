// @ts-check
// A user's Worker, bound to the executor as ECHO, for service_call.
export default {
  /** @param {Request} request */
  async fetch(request) {
    const { pathname } = new URL(request.url);
    // Requests the URL of its body, like a Worker with a backend.
    if (pathname === "/relay") return fetch((await request.json()).url);
    if (pathname === "/forward") return forward(request);
    if (pathname === "/moved") return new Response(null, { status: 302, headers: { location: "/landed" } });
    if (pathname.startsWith("/status/")) return Response.json({ sorry: true }, { status: Number(pathname.slice(8)) });
    if (pathname === "/fail") return Response.json({ sorry: true }, { status: 404 });
    return Response.json({ method: request.method, path: pathname, body: await request.text() });
  },
};

/**
 * Forwards the request with its idempotency key.
 * @param {Request} request
 */
async function forward(request) {
  const { url, ...body } = await request.json();
  const key = request.headers.get("idempotency-key") ?? "";
  return fetch(url, { method: "POST", headers: { "idempotency-key": key }, body: JSON.stringify(body) });
}
