// @ts-check
// One request and its whole answer, on this side of the wasm: each crossing costs more than all that is done here.
import { enter } from "./ask.mjs";

/** How an exchange ended; exchange.rs has the same list. */
const WHOLE = 0;
const TOO_LARGE = 1;
const DEADLINE = 2;
const LOST = 3;
const BROKEN = 4;
const REFUSED = 5;
const BAD_HEADER = 6;

export class Exchange {
  #controller = new AbortController();
  /** @type {Uint8Array[]} */
  #chunks = [];
  /** Headers have come. */
  answered = false;
  /** What went wrong. */
  message = "";
  status = 0;
  /** JSON: pairs of name and value. Empty where they were not wanted. */
  headers = "";

  /**
   * Says by `over` with `id` that it ended, and how. `bodyless` are the statuses whose body nobody reads if they say where to go.
   * @param {Fetcher} peer
   * @param {string} url
   * @param {string} method
   * @param {string} headers JSON: pairs of name and value
   * @param {string | undefined} body
   * @param {Uint16Array} bodyless
   * @param {boolean} inFull an answer of success has headers that somebody reads
   * @param {number} most bytes of the answer
   * @param {number} millis for all of it; below zero there is no limit
   * @param {number} id
   * @param {(id: number, how: number) => void} over
   */
  run(peer, url, method, headers, body, bodyless, inFull, most, millis, id, over) {
    // A copy: what came may be a look into the wasm's memory, and nobody may look there any more when that has grown meanwhile.
    this.#hold(peer, url, method, headers, body, [...bodyless], inFull, most, millis)
      .then((how) => enter(() => over(id, how)))
      // A panic, which was seen.
      .catch(() => {});
  }

  /**
   * Never rejects.
   * @param {Fetcher} peer @param {string} url @param {string} method @param {string} headers @param {string | undefined} body
   * @param {number[]} bodyless @param {boolean} inFull @param {number} most @param {number} millis
   */
  async #hold(peer, url, method, headers, body, bodyless, inFull, most, millis) {
    let isLate = false;
    const late = () => {
      isLate = true;
      this.#controller.abort();
    };
    const timer = millis >= 0 ? setTimeout(late, millis) : undefined;
    try {
      return await this.#talk(peer, url, method, JSON.parse(headers), body, bodyless, inFull, most);
    } catch (error) {
      if (isLate) return DEADLINE;
      if (!this.answered && this.#findBadHeader(JSON.parse(headers))) return BAD_HEADER;
      this.message = String(/** @type {any} */ (error)?.message ?? error);
      if (this.answered) return BROKEN;
      // Connections that fail are plain errors here; this is a request that the platform will never send.
      return error instanceof TypeError ? REFUSED : LOST;
    } finally {
      if (timer !== undefined) clearTimeout(timer);
    }
  }

  /**
   * @param {Fetcher} peer @param {string} url @param {string} method @param {[string, string][]} headers
   * @param {string | undefined} body @param {number[]} bodyless @param {boolean} inFull @param {number} most
   */
  async #talk(peer, url, method, headers, body, bodyless, inFull, most) {
    const init = { method, headers, body: body ?? null, redirect: /** @type {const} */ ("manual"), signal: this.#controller.signal };
    const response = await peer.fetch(url, init);
    this.answered = true;
    this.status = response.status;
    if (inFull || !response.ok) this.headers = JSON.stringify([...response.headers]);
    if (bodyless.includes(response.status) && response.headers.has("location")) {
      this.#controller.abort();
      return WHOLE;
    }
    const reader = response.body?.getReader();
    let size = 0;
    for (;;) {
      const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
      if (done || value === undefined) return WHOLE;
      size += value.length;
      if (size > most) {
        this.#controller.abort();
        return TOO_LARGE;
      }
      this.#chunks.push(value);
    }
  }

  /** Whether it is a header for which the platform would not send the request. @param {[string, string][]} headers */
  #findBadHeader(headers) {
    const bad = headers.find(([name, value]) => {
      try {
        new Headers([[name, value]]);
        return false;
      } catch {
        return true;
      }
    });
    this.message = bad?.[0] ?? "";
    return bad !== undefined;
  }

  /** What has arrived of the body. */
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
}
