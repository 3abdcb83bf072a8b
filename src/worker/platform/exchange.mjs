// @ts-check
// One request and its whole answer, on this side of the wasm: each crossing costs more than all that is done here.
import { enter } from "./executor_client.mjs";

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
   * Says by `over` with `id` that it ended, and how.
   * @param {Fetcher} peer
   * @param {import("./clock.mjs").Clock} clock
   * @param {string} url
   * @param {string} method
   * @param {string} headers JSON: an object of names and values
   * @param {string | undefined} body
   * @param {number} bodyless bit n: nobody reads the body of status 300 + n if it says where to go
   * @param {boolean} inFull an answer of success has headers that somebody reads
   * @param {number} most bytes of the answer
   * @param {number} millis for all of it; below zero there is no limit
   * @param {number} id
   * @param {(id: number, how: number) => void} over
   */
  run(peer, clock, url, method, headers, body, bodyless, inFull, most, millis, id, over) {
    this.#hold(peer, clock, url, method, headers, body, bodyless, inFull, most, millis)
      .then((how) => enter(() => over(id, how)))
      // A panic, which was seen.
      .catch(() => {});
  }

  /**
   * Never rejects.
   * @param {Fetcher} peer @param {import("./clock.mjs").Clock} clock @param {string} url @param {string} method
   * @param {string} headers @param {string | undefined} body @param {number} bodyless @param {boolean} inFull
   * @param {number} most @param {number} millis
   */
  async #hold(peer, clock, url, method, headers, body, bodyless, inFull, most, millis) {
    let isLate = false;
    const late = () => {
      isLate = true;
      this.#controller.abort();
    };
    if (millis >= 0) clock.set(millis, late);
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
      clock.clear(late);
    }
  }

  /**
   * @param {Fetcher} peer @param {string} url @param {string} method @param {Record<string, string>} headers
   * @param {string | undefined} body @param {number} bodyless @param {boolean} inFull @param {number} most
   */
  async #talk(peer, url, method, headers, body, bodyless, inFull, most) {
    const init = { method, headers, body: body ?? null, redirect: /** @type {const} */ ("manual"), signal: this.#controller.signal };
    const response = await peer.fetch(url, init);
    const { status } = response;
    this.answered = true;
    this.status = status;
    if (inFull || !response.ok) this.headers = JSON.stringify([...response.headers]);
    if (status >= 300 && status < 316 && (bodyless >> (status - 300)) & 1 && response.headers.has("location")) {
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

  /** Whether it is a header for which the platform would not send the request. @param {Record<string, string>} headers */
  #findBadHeader(headers) {
    const bad = Object.entries(headers).find(([name, value]) => {
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
