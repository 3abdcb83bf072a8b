// @ts-check
// The clients that watch a run, as its object sees them: hibernating WebSockets, so that they do not keep the object in memory.
// Each is sent the run's history page by page, then the events of every commit. A watcher confirms what it has passed on. One that
// lags behind is sent nothing more until it confirms, and then reads what it lacks from the rows: the object holds little for it.

import { CALL_HEADER } from "./live_stream.mjs";
import { PROTOCOL_HEADER, PROTOCOL } from "./object_request.mjs";

/** Under this property of the object's state the wasm finds the watchers: its bundle has modules of its own. */
const WATCHERS = Symbol.for("curfew.watchers");

/** Events, and characters of events, that a watcher may have without confirming them. */
const UNCONFIRMED_EVENTS = 512;
const UNCONFIRMED_CHARACTERS = 256 * 1024;

const WATCHERS_MAX = 100;

/**
 * What is kept of a watcher while the object is not in memory.
 * @typedef {{ sent: number, confirmed: number }} Position the numbers of events
 *
 * @typedef {{ last: number, last_of_run: number, ended: boolean }} Page of src/protocol/run.rs
 */

export class Watchers {
  #ctx;
  #read;
  /** The last event of the run, as far as it is known here. */
  #last = 0;
  /** Watchers that are about to be accepted. */
  #arriving = 0;
  /** Those that are sent history, with the characters that each has not confirmed. @type {Map<WebSocket, number>} */
  #unconfirmed = new Map();
  /** @type {Set<WebSocket>} */
  #readingHistory = new Set();

  /**
   * @param {DurableObjectState} ctx
   * @param {(call: string) => Promise<Response>} read sends a RunCall to the wasm
   */
  constructor(ctx, read) {
    this.#ctx = ctx;
    this.#read = read;
    /** @type {any} */ (ctx)[WATCHERS] = this;
  }

  /** Called before every publication, so that a run without watchers makes no texts. */
  get isWatched() {
    return this.#arriving > 0 || this.#ctx.getWebSockets().length > 0;
  }

  /**
   * The response to a client that wants to watch: 101, or why not.
   * @param {Request} request
   */
  async accept(request) {
    const call = JSON.parse(decodeURIComponent(request.headers.get(CALL_HEADER) ?? "null"));
    const after = Number(call?.request?.read_live?.after);
    if (this.#ctx.getWebSockets().length + this.#arriving >= WATCHERS_MAX) {
      const message = `the run has ${WATCHERS_MAX} watchers; close one of them, or read /events`;
      return refusal(429, "too_many_watchers", message, { "retry-after": "10" });
    }
    this.#arriving += 1;
    try {
      const response = await this.#read(JSON.stringify(call));
      if (response.status !== 200) return response;
      const { page, lines } = await readPage(response);
      // Nothing will ever follow. An EventSource stops at this status, and would otherwise connect again and again.
      if (page.ended && lines === "") return new Response(null, { status: 204, headers: { [PROTOCOL_HEADER]: PROTOCOL } });
      const { 0: theirs, 1: ours } = new WebSocketPair();
      this.#ctx.acceptWebSocket(ours);
      setPosition(ours, { sent: after, confirmed: after });
      this.#sendPage(ours, page, lines);
      this.#continue(ours);
      return new Response(null, { status: 101, webSocket: theirs, headers: { [PROTOCOL_HEADER]: PROTOCOL } });
    } finally {
      this.#arriving -= 1;
    }
  }

  /**
   * The events of a commit.
   * @param {number} after the number of the last event before them
   * @param {number} last
   * @param {string} lines
   * @param {boolean} hasEnded
   */
  publish(after, last, lines, hasEnded) {
    this.#last = last;
    for (const socket of this.#ctx.getWebSockets()) {
      const isNext = positionOf(socket).sent === after && !this.#readingHistory.has(socket);
      if (isNext && this.#hasRoom(socket)) this.#send(socket, last, lines, hasEnded);
      else this.#continue(socket);
    }
  }

  /**
   * The progress of an attempt. A watcher that is behind does not get it: the next one has all of it.
   * @param {string} line
   */
  publishProgress(line) {
    for (const socket of this.#ctx.getWebSockets()) {
      const isCurrent = positionOf(socket).sent >= this.#last && !this.#readingHistory.has(socket);
      if (isCurrent && this.#hasRoom(socket)) this.#send(socket, positionOf(socket).sent, line, false);
    }
  }

  /**
   * A watcher confirms the events up to a number.
   * @param {WebSocket} socket
   * @param {string | ArrayBuffer} message
   */
  confirmed(socket, message) {
    const { sent, confirmed: before } = positionOf(socket);
    const confirmed = Math.max(before, Number(message));
    if (!Number.isSafeInteger(confirmed) || confirmed > sent) return socket.close(1008, "expected the number of an event that was sent");
    setPosition(socket, { sent, confirmed });
    this.#unconfirmed.delete(socket);
    this.#continue(socket);
  }

  /** @param {WebSocket} socket */
  closed(socket) {
    this.#unconfirmed.delete(socket);
    try {
      socket.close();
    } catch {
      // It is closed already.
    }
  }

  /** @param {WebSocket} socket */
  #hasRoom(socket) {
    const { sent, confirmed } = positionOf(socket);
    return sent - confirmed < UNCONFIRMED_EVENTS && (this.#unconfirmed.get(socket) ?? 0) < UNCONFIRMED_CHARACTERS;
  }

  /** @param {WebSocket} socket @param {Page} page @param {string} lines */
  #sendPage(socket, page, lines) {
    this.#last = Math.max(this.#last, page.last_of_run);
    this.#send(socket, page.last, lines, page.ended && page.last === page.last_of_run);
  }

  /** @param {WebSocket} socket @param {number} last @param {string} lines @param {boolean} hasEnded */
  #send(socket, last, lines, hasEnded) {
    try {
      if (lines !== "") socket.send(lines);
      setPosition(socket, { ...positionOf(socket), sent: last });
      this.#unconfirmed.set(socket, (this.#unconfirmed.get(socket) ?? 0) + lines.length);
      if (hasEnded) socket.close(1000, "ended");
    } catch {
      // The client is gone. Its "close" event follows, or has come.
    }
  }

  /**
   * Sends the history that a watcher lacks, as much as it may have unconfirmed.
   * @param {WebSocket} socket
   */
  async #continue(socket) {
    if (this.#readingHistory.has(socket)) return;
    this.#readingHistory.add(socket);
    try {
      let more = positionOf(socket).sent < this.#last;
      while (more && socket.readyState === WebSocket.OPEN && this.#hasRoom(socket)) {
        const after = positionOf(socket).sent;
        const response = await this.#read(JSON.stringify({ request: { read_live: { after } } }));
        // The run is gone, or its rows cannot be read: the client connects again and learns why.
        if (response.status !== 200) return socket.close(1011, "the history cannot be read");
        const { page, lines } = await readPage(response);
        this.#sendPage(socket, page, lines);
        more = positionOf(socket).sent < this.#last;
      }
    } catch {
      socket.close(1011, "the history cannot be read");
    } finally {
      this.#readingHistory.delete(socket);
    }
  }
}

/** @param {Response} response @returns {Promise<{ page: Page, lines: string }>} */
async function readPage(response) {
  const text = await response.text();
  const end = text.indexOf("\n");
  return { page: JSON.parse(text.slice(0, end)), lines: text.slice(end + 1) };
}

/** Of sockets of this memory: an attachment is read anew only after the object was evicted. @type {WeakMap<WebSocket, Position>} */
const positions = new WeakMap();

/** @param {WebSocket} socket @returns {Position} */
function positionOf(socket) {
  const known = positions.get(socket);
  if (known) return known;
  const position = socket.deserializeAttachment();
  positions.set(socket, position);
  return position;
}

/** @param {WebSocket} socket @param {Position} position */
function setPosition(socket, position) {
  positions.set(socket, position);
  socket.serializeAttachment(position);
}

/** @param {number} status @param {string} code @param {string} message @param {Record<string, string>} headers */
const refusal = (status, code, message, headers) =>
  Response.json({ error: { code, message } }, { status, headers: { ...headers, [PROTOCOL_HEADER]: PROTOCOL } });
