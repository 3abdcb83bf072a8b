// @ts-check
// A request to a run's object, as its wasm takes it: text in, text out. src/protocol/run.rs has what the texts are.
import { LIVE_URL } from "./live_stream.mjs";
import { callWasm, nextId } from "./wasm_call.mjs";

/** Of src/protocol/run.rs. */
export const PROTOCOL = "2";
const URL = `http://run/requests/${PROTOCOL}`;
export const PROTOCOL_HEADER = "curfew-run-protocol";

/**
 * @typedef {{ respond: (status: number, body: string, bill: string) => void }} ResponseSink
 * @typedef {{ handle_request: (number: number, request: string, sink: ResponseSink) => void }} RequestHandler
 */

/**
 * @param {RequestHandler} handler
 * @param {import("./live_sockets.mjs").Watchers} watchers
 * @param {Request} request
 * @returns {Promise<Response>}
 */
export async function handleRequest(handler, watchers, request) {
  if (request.url === URL) return handleText(handler, await request.text());
  if (request.url === LIVE_URL) return watchers.accept(request);
  // While a new version is rolled out, Workers of the old one reach objects of the new one. Their senders try again.
  const message = "a new version of Curfew is being deployed; nothing was done, repeat the request";
  return Response.json({ error: { code: "other_build", message } }, { status: 503 });
}

/**
 * @param {RequestHandler} handler
 * @param {string} request the JSON of a RunCall
 * @returns {Promise<Response>}
 */
export function handleText(handler, request) {
  const { promise, resolve } = Promise.withResolvers();
  /** @type {ResponseSink} */
  const sink = {
    respond: (status, body, bill) => {
      const headers = { "content-type": "application/json", "x-curfew-bill": bill, [PROTOCOL_HEADER]: PROTOCOL };
      resolve(new Response(body, { status, headers }));
    },
  };
  callWasm(() => handler.handle_request(nextId(), request, sink));
  return promise;
}
