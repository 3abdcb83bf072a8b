// @ts-check
// A request to an object, as its wasm takes it: text in, text out.
import { callWasm, nextId } from "./wasm_call.mjs";

/** Where the API finds a run's object; the wasm knows the rest. */
const ADDRESS = "http://run";

/**
 * @typedef {{ answer: (status: number, body: string, bill: string) => void }} Caller
 * @typedef {{ knock: (number: number, method: string, path: string, body: string, caller: Caller) => void }} Doors
 */

/**
 * @param {Doors} doors
 * @param {Request} request
 * @returns {Promise<Response>}
 */
export async function knock(doors, request) {
  const body = await request.text();
  const { promise, resolve } = Promise.withResolvers();
  /** @type {Caller} */
  const caller = {
    answer: (status, text, bill) =>
      resolve(new Response(text, { status, headers: { "content-type": "application/json", "x-curfew-bill": bill } })),
  };
  callWasm(() => doors.knock(nextId(), request.method, request.url.slice(ADDRESS.length), body, caller));
  return promise;
}
