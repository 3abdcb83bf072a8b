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
  const path = `/v1/workflows/${segment(workflow, "create: workflow, the id of a workflow,")}/runs`;
  const run = await call(send, "POST", path, id === undefined ? body : { run_id: id, ...body });
  return /** @type {string} */ (run.id);
}

/** A run. It need not exist: every method then fails with `not_found`. */
export class RunHandle extends RpcTarget {
  #send;
  #id;
  #path;

  /** @param {Send} send @param {string} id */
  constructor(send, id) {
    super();
    this.#path = `/v1/runs/${segment(id, "get: the id of a run")}`;
    this.#send = send;
    this.#id = id;
  }

  get id() {
    return this.#id;
  }

  /** The run as the API shows it. @param {{ wait_ms?: number }} [options] how long to wait for its end */
  status(options = {}) {
    const { wait_ms } = fieldsOf(options, "status", ["wait_ms"]);
    return this.#call("GET", wait_ms === undefined ? "" : `?wait_ms=${encodeURIComponent(wait_ms)}`);
  }

  /** @param {{ name: string, payload?: unknown }} signal */
  sendSignal(signal) {
    const { name, payload = {} } = fieldsOf(signal, "sendSignal", ["name", "payload"]);
    return this.#call("POST", `/signals/${segment(name, "sendSignal: name, the name of a signal,")}`, payload);
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
    return this.#call("POST", `/gates/${segment(gate, "decide: the id of a gate")}`, decision);
  }

  /**
   * The events of the run as they are committed, one JSON object a line. It ends with the run.
   * @param {{ after?: number, kinds?: string[] }} [options]
   * @returns {Promise<ReadableStream<Uint8Array>>}
   */
  async subscribe(options = {}) {
    const { after, kinds } = fieldsOf(options, "subscribe", ["after", "kinds"]);
    const query = new URLSearchParams();
    if (after !== undefined) query.set("after", String(after));
    if (kinds !== undefined && !Array.isArray(kinds)) throw invalid("subscribe: kinds is a list of kinds of events");
    if (kinds !== undefined) query.set("kinds", kinds.join(","));
    const response = await this.#send(new Request(`${ORIGIN}${this.#path}/live?${query}`));
    if (!response.ok) throw await failure(response);
    // A run that has ended and has nothing left to send.
    if (response.body === null) return new Blob([]).stream();
    return linesOfEvents(response.body);
  }

  /** @param {string} method @param {string} rest @param {unknown} [body] */
  #call(method, rest, body) {
    return call(this.#send, method, this.#path + rest, body);
  }
}

/**
 * A name as a part of a path. A URL takes `.` and `..` for steps between folders, however they are written.
 * @param {unknown} name
 * @param {string} what
 */
function segment(name, what) {
  if (typeof name !== "string" || name === "") throw invalid(`${what} is missing`);
  if (name === "." || name === "..") throw invalid(`${what} cannot be "${name}"`);
  return encodeURIComponent(name);
}

/**
 * Unknown fields are refused, as those of bodies are.
 * @param {unknown} value
 * @param {string} method
 * @param {string[]} known
 * @returns {any}
 */
function fieldsOf(value, method, known) {
  const takes = `it takes an object with ${known.join(" and ")}`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(`${method}: ${takes}`);
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalid(`${method}: unknown field "${unknown}"; ${takes}`);
  return value;
}

/** @param {string} message */
const invalid = (message) => refusal({ code: "invalid_request", message }, 400);

/** @param {Send} send @param {string} method @param {string} path @param {unknown} [body] @returns {Promise<any>} */
async function call(send, method, path, body) {
  const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await send(new Request(ORIGIN + path, { method, ...content }));
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** @param {Response} response */
async function failure(response) {
  const { error } = /** @type {any} */ (await response.json());
  return refusal(error, response.status);
}

/**
 * What a method throws. The code also stands in the message, which every version of the runtime carries over.
 * @param {{ code: string, message: string }} error
 * @param {number} status
 */
function refusal({ code, message, ...more }, status) {
  return Object.assign(new Error(`${code}: ${message}`), { name: "CurfewError", code, status, ...more });
}

/**
 * From server-sent events to one JSON object a line. A comment becomes a space, which JSON may begin with: only a write shows whether the
 * caller has cancelled the stream.
 * @param {ReadableStream<Uint8Array>} events
 */
function linesOfEvents(events) {
  const { readable, writable } = new IdentityTransformStream();
  const reader = events.getReader();
  const writer = writable.getWriter();
  passOn(reader, writer).catch((reason) => reader.cancel(reason));
  return readable;
}

/** @param {ReadableStreamDefaultReader<Uint8Array>} reader @param {WritableStreamDefaultWriter<Uint8Array>} writer */
async function passOn(reader, writer) {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return writer.close();
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    const text = lines.map(lineOf).join("");
    if (text !== "") await writer.write(encoder.encode(text));
  }
}

/** @param {string} line of server-sent events */
function lineOf(line) {
  if (line.startsWith("data: ")) return `${line.slice("data: ".length)}\n`;
  return line.startsWith(":") ? " " : "";
}
