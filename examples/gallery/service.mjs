// A service on loopback for an example. It records every call, and answers a call that comes again with the same Idempotency-Key as
// before, without doing its work twice: what a peer of a durable workflow should do.
import { createServer } from "node:http";

/**
 * @typedef {object} Call
 * @property {string} name "POST /charges"
 * @property {any} body
 * @property {string | undefined} key the Idempotency-Key
 * @property {boolean} repeated the same key was there before
 * @property {boolean} aborted the caller disconnected before the answer was complete
 *
 * @typedef {object} Reply
 * @property {number} [status]
 * @property {unknown} [body] sent as JSON
 * @property {(signal: AbortSignal) => AsyncIterable<string>} [stream] server-sent events instead of a body
 *
 * @typedef {(body: any, request: import("node:http").IncomingMessage) => Reply | Promise<Reply>} Route
 * @typedef {(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse, body: any) => Promise<void>} RawRoute
 * @typedef {{url: string, calls: Call[], close(): Promise<void>}} Service
 */

const BODY_BYTES_MAX = 1024 * 1024;

/**
 * @param {Record<string, Route>} routes by method and path; a path that ends with /* stands for all below it
 * @param {Record<string, RawRoute>} [raw] routes that write their own answers, and are not recorded
 * @returns {Promise<Service>}
 */
export async function startService(routes, raw = {}) {
  /** @type {Call[]} */
  const calls = [];
  /** @type {Map<string, Promise<Reply>>} */
  const answered = new Map();

  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://service").pathname;
    const text = await readBody(request);
    if (text === undefined) return send(response, 413, { error: "the body is too large" });
    const body = parsed(text);
    const name = `${request.method} ${path}`;
    const own = raw[name];
    if (own) return own(request, response, body);

    const route = routes[name] ?? routes[name.replace(/\/[^/]+$/, "/*")];
    if (!route) return send(response, 404, { error: `there is no ${name}` });
    const key = request.headers["idempotency-key"]?.toString();
    const before = key === undefined ? undefined : answered.get(`${name} ${key}`);
    /** @type {Call} */
    const call = { name, body, key, repeated: before !== undefined, aborted: false };
    calls.push(call);
    const disconnected = new AbortController();
    response.on("close", () => {
      call.aborted = !response.writableFinished;
      disconnected.abort();
    });
    const reply = before ?? Promise.resolve(route(body, request));
    const { status = 200, body: answer, stream } = await reply;
    // Only what was done counts: a failure may be tried again under the same key.
    if (key !== undefined && status < 400 && !stream) answered.set(`${name} ${key}`, reply);
    if (stream) return sendEvents(response, stream(disconnected.signal));
    send(response, status, answer ?? {});
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A pause that ends early when the caller disconnects. @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** @param {import("node:http").IncomingMessage} request */
async function readBody(request) {
  /** @type {Buffer[]} */
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** @param {import("node:http").ServerResponse} response @param {number} status @param {unknown} body */
function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** @param {import("node:http").ServerResponse} response @param {AsyncIterable<string>} events */
async function sendEvents(response, events) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.socket?.setNoDelay(true);
  for await (const data of events) {
    if (response.destroyed) return;
    response.write(`data: ${data}\n\n`);
  }
  response.end();
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
