// @ts-check
// HTTP requests of the wasm. A crossing between wasm and JavaScript costs more than everything that is done here, so a whole
// response crosses once, and a streamed one once for its headers and once for each chunk.
import { callWasm } from "./wasm_call.mjs";

/** How an operation ended; http_client.rs has the same list. */
const READY = 0;
const TOO_LARGE = 1;
const DEADLINE = 2;
const LOST = 3;
const BROKEN = 4;
const REFUSED = 5;
const BAD_HEADER = 6;
const END_OF_BODY = 7;

/**
 * One request and its response. Every operation ends with one call of `done`, with the id it was given and how it ended.
 * @typedef {(id: number, how: number) => void} Done
 */
export class Exchange {
  #controller = new AbortController();
  /** @type {Uint8Array[]} */
  #chunks = [];
  /** @type {ReadableStreamDefaultReader<Uint8Array> | undefined} */
  #reader;
  /** Of a streamed response. @type {Response | undefined} */
  response;
  /** Why there is no response. */
  message = "";
  /** 0 until the headers have arrived. */
  status = 0;
  /** JSON: pairs of name and value. Empty where they were not asked for. */
  headers = "";
  /** The body, once `readText` has read it. */
  text = "";

  /**
   * Sends the request and reads the whole response, all within `timeoutMs`.
   * @param {Fetcher} peer
   * @param {import("./clock.mjs").Clock} clock
   * @param {string} url
   * @param {string} method
   * @param {string} headers JSON: an object of names and values
   * @param {string | undefined} body
   * @param {number} skipBodyOf bit n: the body of status 300 + n is not read if the response has a location
   * @param {boolean} wantsHeaders also of a response with status 2xx
   * @param {number} maxBytes of the body
   * @param {number} timeoutMs negative: no limit
   * @param {number} id
   * @param {Done} done
   */
  fetchWhole(peer, clock, url, method, headers, body, skipBodyOf, wantsHeaders, maxBytes, timeoutMs, id, done) {
    this.#finish(this.#fetchWithin(peer, clock, url, method, headers, body, skipBodyOf, wantsHeaders, maxBytes, timeoutMs), id, done);
  }

  /**
   * Sends the request and waits for the headers of the response.
   * @param {Fetcher} peer @param {string} url @param {string} method @param {string} headers @param {string | undefined} body
   * @param {number} id @param {Done} done
   */
  open(peer, url, method, headers, body, id, done) {
    this.#finish(this.#open(peer, url, method, JSON.parse(headers), body), id, done);
  }

  /**
   * Asks a model of Workers AI; its response is streamed like that of `open`.
   * @param {{ run: Function }} ai @param {string} model @param {string} inputs JSON
   * @param {number} id @param {Done} done
   */
  runModel(ai, model, inputs, id, done) {
    this.#finish(this.#runModel(ai, model, inputs), id, done);
  }

  /** Reads the next chunk of a streamed body; `bytes` returns it. @param {number} id @param {Done} done */
  readChunk(id, done) {
    this.#finish(this.#readChunk(), id, done);
  }

  /** Reads all of a streamed body as one promise. @param {number} id @param {Done} done */
  readText(id, done) {
    this.#finish(this.#readText(), id, done);
  }

  /** @param {string} name */
  header(name) {
    return this.response?.headers.get(name) ?? undefined;
  }

  /** What has arrived of the body and was not read yet. */
  bytes() {
    if (this.#chunks.length === 1) return this.#chunks[0];
    const bytes = new Uint8Array(this.#chunks.reduce((size, chunk) => size + chunk.length, 0));
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return bytes;
  }

  abort() {
    this.#controller.abort();
  }

  /** @param {Promise<number>} operation never rejects @param {number} id @param {Done} done */
  #finish(operation, id, done) {
    operation
      .then((how) => callWasm(() => done(id, how)))
      // A panic, which `callWasm` has reported.
      .catch(() => {});
  }

  /**
   * @param {Fetcher} peer @param {import("./clock.mjs").Clock} clock @param {string} url @param {string} method
   * @param {string} headers @param {string | undefined} body @param {number} skipBodyOf @param {boolean} wantsHeaders
   * @param {number} maxBytes @param {number} timeoutMs
   */
  async #fetchWithin(peer, clock, url, method, headers, body, skipBodyOf, wantsHeaders, maxBytes, timeoutMs) {
    let isLate = false;
    const onDeadline = () => {
      isLate = true;
      this.#controller.abort();
    };
    if (timeoutMs >= 0) clock.set(timeoutMs, onDeadline);
    const fields = JSON.parse(headers);
    try {
      const response = await this.#fetch(peer, url, method, fields, body);
      return await this.#readWhole(response, skipBodyOf, wantsHeaders, maxBytes);
    } catch (error) {
      return isLate ? DEADLINE : this.#failed(error, fields);
    } finally {
      clock.clear(onDeadline);
    }
  }

  /**
   * @param {Fetcher} peer @param {string} url @param {string} method @param {Record<string, string>} headers
   * @param {string | undefined} body
   */
  async #open(peer, url, method, headers, body) {
    try {
      this.response = await this.#fetch(peer, url, method, headers, body);
      this.status = this.response.status;
      return READY;
    } catch (error) {
      return this.#failed(error, headers);
    }
  }

  /**
   * Redirects are not followed: each target is checked first.
   * @param {Fetcher} peer @param {string} url @param {string} method @param {Record<string, string>} headers
   * @param {string | undefined} body
   */
  #fetch(peer, url, method, headers, body) {
    const init = { method, headers, body: body ?? null, redirect: /** @type {const} */ ("manual"), signal: this.#controller.signal };
    return peer.fetch(url, init);
  }

  /** @param {Response} response @param {number} skipBodyOf @param {boolean} wantsHeaders @param {number} maxBytes */
  async #readWhole(response, skipBodyOf, wantsHeaders, maxBytes) {
    const { status } = response;
    this.status = status;
    if (wantsHeaders || !response.ok) this.headers = JSON.stringify([...response.headers]);
    if (status >= 300 && status < 316 && (skipBodyOf >> (status - 300)) & 1 && response.headers.has("location")) {
      this.#controller.abort();
      return READY;
    }
    const reader = response.body?.getReader();
    let size = 0;
    for (;;) {
      const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
      if (done || value === undefined) return READY;
      size += value.length;
      if (size > maxBytes) {
        this.#controller.abort();
        return TOO_LARGE;
      }
      this.#chunks.push(value);
    }
  }

  /** @param {{ run: Function }} ai @param {string} model @param {string} inputs */
  async #runModel(ai, model, inputs) {
    try {
      // Raw, with status and headers: an error alone does not say how long to wait.
      const options = { signal: this.#controller.signal, returnRawResponse: true };
      const output = await ai.run(model, JSON.parse(inputs), options);
      // Models that do not know raw responses return a stream, or the value itself.
      const isStream = typeof output?.getReader === "function";
      this.response = output instanceof Response ? output : new Response(isStream ? output : JSON.stringify(output));
      this.status = this.response.status;
      return READY;
    } catch (error) {
      this.#keepMessage(error);
      return LOST;
    }
  }

  async #readChunk() {
    try {
      this.#reader ??= this.response?.body?.getReader();
      const { value, done } = (await this.#reader?.read()) ?? { value: undefined, done: true };
      if (done || value === undefined) return END_OF_BODY;
      this.#chunks = [value];
      return READY;
    } catch (error) {
      this.#keepMessage(error);
      return BROKEN;
    }
  }

  async #readText() {
    try {
      this.text = (await this.response?.text()) ?? "";
      return READY;
    } catch (error) {
      this.#keepMessage(error);
      return BROKEN;
    }
  }

  /** @param {unknown} error @param {Record<string, string>} headers */
  #failed(error, headers) {
    this.#keepMessage(error);
    if (this.status !== 0) return BROKEN;
    const bad = findBadHeader(headers);
    if (bad !== undefined) {
      this.message = bad;
      return BAD_HEADER;
    }
    // A connection that fails is a plain error here; a TypeError is a request that the platform will never send.
    return error instanceof TypeError ? REFUSED : LOST;
  }

  /** @param {unknown} error */
  #keepMessage(error) {
    this.message = String(/** @type {any} */ (error)?.message ?? error);
  }
}

/** The name of the header for which the platform refuses to send a request. @param {Record<string, string>} headers */
function findBadHeader(headers) {
  const isBad = (/** @type {[string, string]} */ header) => {
    try {
      new Headers([header]);
      return false;
    } catch {
      return true;
    }
  };
  return Object.entries(headers).find(isBad)?.[0];
}
