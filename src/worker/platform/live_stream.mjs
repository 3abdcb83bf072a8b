// @ts-check
// The API's side of a client that watches a run: a WebSocket to the run's object (live_sockets.mjs), and server-sent events or a
// WebSocket to the client. The object hibernates while nothing happens; this side does not, and waits for free.

/** Where a watcher connects; the number is PROTOCOL of src/protocol/run.rs. An object of another build answers 503 there. */
export const LIVE_URL = "http://run/live/2";

/** The header with the JSON of the RunCall that authorizes a watcher, percent-encoded. */
export const CALL_HEADER = "curfew-live-call";

const STREAM_HEADERS = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

/** When the client shall connect again after a lost connection. */
const RETRY_MS = 2_000;
/** A comment this often shows the client that the connection is alive, and this side when it is not. */
const ALIVE_MS = 15_000;

/** So many events, or characters, are confirmed together. The object sends about eight times as many unconfirmed ones. */
const CONFIRM_EVENTS = 64;
const CONFIRM_CHARACTERS = 32 * 1024;

/** What an object answers if the run has ended and nothing is left to send. An EventSource stops at it. */
const ENDED = 204;

/** A WebSocket does not say what its client has read. One that sends nothing for so long may not be reading. */
const SILENT_CHARACTERS = 8 * 1024 * 1024;

/**
 * @typedef {{ id: string, kind: string, data: string }} Line an event; what is no part of the history has the id "-"
 */

/**
 * The response to a client that watches a run, or what the object refuses it with.
 * @param {Fetcher} object
 * @param {string} call the JSON of a RunCall
 * @param {string[]} kinds empty for all
 * @param {"events" | "socket" | "head"} form `head`: the answer to a HEAD, which would wait for the end of a body
 * @returns {Promise<Response>}
 */
export async function watchRun(object, call, kinds, form) {
  const headers = { upgrade: "websocket", [CALL_HEADER]: encodeURIComponent(call) };
  const response = await object.fetch(LIVE_URL, { headers });
  const { webSocket: socket } = response;
  if (!socket) return form === "socket" && response.status === ENDED ? toEnd() : response;
  const source = new Source(socket, kinds);
  if (form === "socket") return toSocket(source);
  if (form === "events") return toEventStream(source);
  source.start(() => {}, () => {});
  source.close();
  return new Response(null, { headers: STREAM_HEADERS });
}

/** The events that an object sends, filtered, in their order. */
class Source {
  #socket;
  #kinds;
  #unconfirmedEvents = 0;
  #unconfirmedCharacters = 0;
  #lastId = "0";

  /** @param {WebSocket} socket @param {string[]} kinds */
  constructor(socket, kinds) {
    this.#socket = socket;
    this.#kinds = new Set(kinds);
  }

  /**
   * @param {(lines: Line[], confirm: () => void) => void} onLines calls `confirm` when it has passed them on
   * @param {(hasEnded: boolean) => void} onClosed
   */
  start(onLines, onClosed) {
    this.#socket.addEventListener("message", ({ data }) => {
      const lines = String(data).split("\n").map(parseLine);
      const wanted = lines.filter(({ kind }) => this.#kinds.size === 0 || this.#kinds.has(kind));
      onLines(wanted, () => this.#confirm(lines, String(data).length));
    });
    this.#socket.addEventListener("close", ({ code }) => onClosed(code === 1000));
    this.#socket.addEventListener("error", () => onClosed(false));
    this.#socket.accept();
  }

  close() {
    try {
      this.#socket.close(1000, "the client is gone");
    } catch {
      // It is closed already.
    }
  }

  /** @param {Line[]} lines @param {number} characters */
  #confirm(lines, characters) {
    this.#unconfirmedEvents += lines.length;
    this.#unconfirmedCharacters += characters;
    this.#lastId = lines.findLast(({ id }) => id !== "-")?.id ?? this.#lastId;
    if (this.#unconfirmedEvents < CONFIRM_EVENTS && this.#unconfirmedCharacters < CONFIRM_CHARACTERS) return;
    this.#unconfirmedEvents = 0;
    this.#unconfirmedCharacters = 0;
    try {
      this.#socket.send(this.#lastId);
    } catch {
      // It is closed already.
    }
  }
}

/** @param {string} line @returns {Line} */
function parseLine(line) {
  const first = line.indexOf(" ");
  const second = line.indexOf(" ", first + 1);
  return { id: line.slice(0, first), kind: line.slice(first + 1, second), data: line.slice(second + 1) };
}

/** @param {Source} source */
function toEventStream(source) {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  let unsent = `retry: ${RETRY_MS}\n\n`;
  /** Called when what is unsent was taken by the client. @type {(() => void)[]} */
  let confirms = [];
  let isWriting = false;
  let isSourceClosed = false;
  // A reader that cancels is gone at once, without a write that fails.
  writer.closed.catch(() => {
    clearInterval(alive);
    source.close();
  });
  // What arrives during a write is written together: each write costs more than the text in it.
  const write = async () => {
    if (isWriting) return;
    isWriting = true;
    try {
      while (unsent !== "" || confirms.length > 0) {
        const [text, passedOn] = [unsent, confirms];
        [unsent, confirms] = ["", []];
        if (text !== "") await writer.write(encoder.encode(text));
        for (const confirm of passedOn) confirm();
      }
      if (isSourceClosed) await writer.close();
      isWriting = false;
    } catch {
      // The client is gone. Nothing is written any more.
      clearInterval(alive);
      source.close();
    }
  };
  const alive = setInterval(() => {
    if (isWriting) return;
    unsent += ": alive\n\n";
    write();
  }, ALIVE_MS);
  source.start(
    (lines, confirm) => {
      unsent += lines.map(eventOf).join("");
      confirms.push(confirm);
      write();
    },
    () => {
      clearInterval(alive);
      isSourceClosed = true;
      write();
    },
  );
  write();
  return new Response(readable, { headers: STREAM_HEADERS });
}

/** @param {Line} line */
const eventOf = ({ id, kind, data }) => (id === "-" ? `event: ${kind}\ndata: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`);

/** Clients of a WebSocket do not see the status of a handshake that fails, and would connect again. */
function toEnd() {
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.close(1000, "ended");
  return new Response(null, { status: 101, webSocket: client });
}

/** @param {Source} source */
function toSocket(source) {
  const { 0: client, 1: server } = new WebSocketPair();
  let sinceMessage = 0;
  /** @param {number} code @param {string} reason */
  const close = (code, reason) => {
    source.close();
    try {
      server.close(code, reason);
    } catch {
      // It is closed already.
    }
  };
  server.addEventListener("message", () => (sinceMessage = 0));
  server.addEventListener("close", () => close(1000, ""));
  server.addEventListener("error", () => close(1011, ""));
  server.accept();
  source.start(
    (lines, confirm) => {
      for (const { data } of lines) {
        sinceMessage += data.length;
        try {
          server.send(data);
        } catch {
          return source.close();
        }
      }
      if (sinceMessage > SILENT_CHARACTERS) return close(1013, "send a message now and then, and connect again after the last event");
      confirm();
    },
    (hasEnded) => (hasEnded ? close(1000, "ended") : close(1012, "connect again after the last event")),
  );
  return new Response(null, { status: 101, webSocket: client });
}
