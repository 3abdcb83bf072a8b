// @ts-check
// The headers of every answer of the API.

/** A browser must neither guess the type of an answer nor keep it. */
const HEADERS = { "x-content-type-options": "nosniff", "cache-control": "no-store" };

/** What an object has cost. */
const BILL = "x-curfew-bill";

/**
 * The response with the headers of every answer. It is a new one, because those of a forwarded response cannot be changed.
 * @param {Response} response
 * @param {boolean} showsBill
 */
export function finishResponse(response, showsBill) {
  const finished = new Response(response.body, response);
  for (const [name, value] of Object.entries(HEADERS)) finished.headers.set(name, value);
  if (!showsBill) finished.headers.delete(BILL);
  return finished;
}

/** @param {{ code: string, message: string }} error @param {number} status */
export function errorResponse(error, status) {
  return Response.json({ error }, { status, headers: HEADERS });
}
