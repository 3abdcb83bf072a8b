// @ts-check
// What a Worker of the same account calls on its service binding. Each method is a request to the API, so that both answer alike; the
// binding takes the place of a token.
import { RpcTarget } from "cloudflare:workers";

/** Only its path counts. */
const ORIGIN = "http://curfew";

/**
 * @typedef {(request: Request) => Promise<Response>} Send
 * @typedef {{ workflow: string, id?: string, input?: unknown, version?: number, timeout?: string | null, timeout_ms?: number | null }} CreateOptions
 */

/**
 * Starts a run and returns its id.
 * @param {Send} send
 * @param {CreateOptions} options
 */
export async function create(send, options) {
  const { workflow, id, ...body } = Object(options);
  if (typeof workflow !== "string") throw new TypeError("create: workflow, the id of a workflow, is missing");
  const run = await call(send, "POST", `/v1/workflows/${encodeURIComponent(workflow)}/runs`, id === undefined ? body : { run_id: id, ...body });
  return /** @type {string} */ (run.id);
}

/** A run. It need not exist: every method then fails with `not_found`. */
export class RunHandle extends RpcTarget {
  #send;
  #id;

  /** @param {Send} send @param {string} id */
  constructor(send, id) {
    super();
    if (typeof id !== "string" || id === "") throw new TypeError("get: the id of a run is missing");
    this.#send = send;
    this.#id = id;
  }

  get id() {
    return this.#id;
  }

  /** The run as the API shows it. @param {{ wait_ms?: number }} [options] how long to wait for its end */
  status({ wait_ms } = {}) {
    return this.#call("GET", wait_ms === undefined ? "" : `?wait_ms=${encodeURIComponent(wait_ms)}`);
  }

  /** @param {{ name: string, payload?: unknown }} signal */
  sendSignal({ name, payload = {} }) {
    return this.#call("POST", `/signals/${encodeURIComponent(name)}`, payload);
  }

  /** @param {{ reason?: string }} [body] */
  cancel(body = {}) {
    return this.#call("POST", "/cancel", body);
  }

  pause() {
    return this.#call("POST", "/pause", {});
  }

  resume() {
    return this.#call("POST", "/resume", {});
  }

  /** @param {{ by?: string, by_ms?: number, until?: number }} body */
  extend(body) {
    return this.#call("POST", "/extend", body);
  }

  /** @param {string} gate its id @param {{ choice: string, input?: unknown, comment?: string }} decision */
  decide(gate, decision) {
    return this.#call("POST", `/gates/${encodeURIComponent(gate)}`, decision);
  }

  /**
   * The events of the run as they are committed, one JSON object a line. It ends with the run.
   * @param {{ after?: number, kinds?: string[] }} [options]
   * @returns {Promise<ReadableStream<Uint8Array>>}
   */
  async subscribe({ after, kinds } = {}) {
    const query = new URLSearchParams();
    if (after !== undefined) query.set("after", String(after));
    if (kinds !== undefined) query.set("kinds", kinds.join(","));
    const response = await this.#send(new Request(`${ORIGIN}${this.#path}/live?${query}`));
    if (!response.ok) throw await failure(response);
    // A run that has ended and has nothing left to send.
    if (response.body === null) return new Blob([]).stream();
    return response.body.pipeThrough(linesOfEvents());
  }

  get #path() {
    return `/v1/runs/${encodeURIComponent(this.#id)}`;
  }

  /** @param {string} method @param {string} rest @param {unknown} [body] */
  #call(method, rest, body) {
    return call(this.#send, method, this.#path + rest, body);
  }
}

/** @param {Send} send @param {string} method @param {string} path @param {unknown} [body] @returns {Promise<any>} */
async function call(send, method, path, body) {
  const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await send(new Request(ORIGIN + path, { method, ...content }));
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** What a method throws. The code also stands in the message, which every version of the runtime carries over. @param {Response} response */
async function failure(response) {
  const { error } = /** @type {any} */ (await response.json());
  const { code, message, ...more } = error;
  return Object.assign(new Error(`${code}: ${message}`), { name: "CurfewError", code, status: response.status, ...more });
}

/** From server-sent events to one JSON object a line. Comments and the times of reconnection are left out. */
function linesOfEvents() {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  return new TransformStream({
    /** @param {Uint8Array} chunk @param {TransformStreamDefaultController<Uint8Array>} controller */
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => `${line.slice("data: ".length)}\n`);
      if (data.length > 0) controller.enqueue(encoder.encode(data.join("")));
    },
  });
}
