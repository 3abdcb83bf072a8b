// @ts-check
// A conversation with an executor, whole, on this side of the wasm: each crossing costs more than all that is done here.
// A WebSocket and no streams: a message costs one turn of whoever gets it, a chunk of a stream one of each side and more.

/** Longer texts go in pieces: the platform bounds a message, not what is said. */
const PIECE = 256 * 1024;

const EXECUTE = "http://executor/execute";

/** Asks an executor to say so often that it lives, and is in the answer of one that does. */
export const HEARTBEAT_HEADER = "curfew-heartbeat-ms";

/**
 * Orders and reports are lines. What is said ends with one.
 * @param {WebSocket} socket
 * @param {string} lines
 */
export function say(socket, lines) {
  try {
    let at = 0;
    while (lines.length - at > PIECE) {
      // Not between the two halves of one character: each would arrive as none.
      const isSplit = (lines.charCodeAt(at + PIECE - 1) & 0xfc00) === 0xd800;
      const end = at + PIECE - Number(isSplit);
      socket.send(lines.slice(at, end));
      at = end;
    }
    socket.send(`${lines.slice(at)}\n`);
  } catch {
    // Whoever is not there any more cannot be told. That it is over is heard in its own way.
  }
}

/**
 * Hands over the lines that came together, until some could not be taken: then nothing more is.
 * @param {WebSocket} socket
 * @param {(lines: string) => void} take
 * @param {(error: unknown) => void} broken
 */
export function eachMessage(socket, take, broken) {
  let rest = "";
  let isBroken = false;
  socket.addEventListener("message", ({ data }) => {
    rest += data;
    if (isBroken || !rest.endsWith("\n")) return;
    const lines = rest.slice(0, -1);
    rest = "";
    try {
      take(lines);
    } catch (error) {
      isBroken = true;
      broken(error);
    }
  });
}

/**
 * Opens a conversation, in which the executor is asked to say every `heartbeatMs` that it lives. `heard` gets reports as they come, those that came together as lines; `over` comes last, with a reason if
 * the conversation broke.
 * @param {Fetcher} executor
 * @param {number} id
 * @param {number} heartbeatMs
 * @param {(id: number, reports: string) => void} heard
 * @param {(id: number, reason?: string) => void} over
 */
export function ask(executor, id, heartbeatMs, heard, over) {
  const conversation = new Conversation();
  tell(conversation.hold(executor, heartbeatMs, (reports) => enter(() => heard(id, reports))), id, over);
  return conversation;
}

/**
 * As `ask`, for a single order that nothing follows: a request costs half of what a WebSocket does.
 * @param {Fetcher} executor
 * @param {number} id
 * @param {string} order
 * @param {(id: number, report: string) => void} heard
 * @param {(id: number, reason?: string) => void} over
 */
export function askOnce(executor, id, order, heard, over) {
  const controller = new AbortController();
  const hold = async () => {
    const init = { method: "POST", body: order, signal: controller.signal };
    const response = await executor.fetch(EXECUTE, init);
    const { ok, status } = response;
    if (!ok) throw new Error(`the executor answered with status ${status}`);
    const report = await response.text();
    enter(() => heard(id, report));
  };
  tell(hold(), id, over);
  // Its attempt has a limit of its own, and needs no other sign of life.
  return { send: () => {}, finish: () => {}, abort: () => controller.abort(), silentMs: () => 0 };
}

/** @param {Promise<void>} held @param {number} id @param {(id: number, reason?: string) => void} over */
function tell(held, id, over) {
  held.then(
    () => enter(() => over(id)),
    (error) => error instanceof Left || enter(() => over(id, String(error?.message ?? error))),
  );
}

class Conversation {
  #controller = new AbortController();
  /** @type {WebSocket | undefined} */
  #socket;
  /** Said before anybody was there. @type {string[]} */
  #unsaid = [];
  #isFinished = false;
  /** An executor that has not answered yet is expected to, and one of an older build never says that it lives. */
  #beats = true;
  #heardAt = Date.now();

  /**
   * Until it is over.
   * @param {Fetcher} executor
   * @param {number} heartbeatMs
   * @param {(reports: string) => void} hear
   */
  async hold(executor, heartbeatMs, hear) {
    const headers = { upgrade: "websocket", [HEARTBEAT_HEADER]: String(heartbeatMs) };
    const response = await executor.fetch(EXECUTE, { headers, signal: this.#controller.signal });
    const { status, webSocket: socket } = response;
    if (!socket) throw new Error(`the executor answered with status ${status}`);
    this.#beats = response.headers.has(HEARTBEAT_HEADER);
    this.#heardAt = Date.now();
    const { promise, resolve, reject } = Promise.withResolvers();
    const take = (/** @type {string} */ lines) => {
      this.#heardAt = Date.now();
      // An empty line: a heartbeat.
      if (lines !== "") hear(lines);
    };
    eachMessage(socket, take, (error) => {
      socket.close();
      reject(error);
    });
    socket.addEventListener("close", resolve);
    socket.addEventListener("error", ({ error, message }) => reject(error ?? new Error(message)));
    socket.accept();
    this.#socket = socket;
    for (const orders of this.#unsaid) say(socket, orders);
    if (this.#isFinished) socket.close();
    await promise;
  }

  /** @param {string} orders */
  send(orders) {
    if (this.#socket) say(this.#socket, orders);
    else this.#unsaid.push(orders);
  }

  /** For how long nothing was heard of an executor that beats. */
  silentMs() {
    return this.#beats ? Date.now() - this.#heardAt : 0;
  }

  /** Nothing more to say: everything was answered. */
  finish() {
    this.#isFinished = true;
    this.#socket?.close();
  }

  /** Whatever the executor is at, it ends now. */
  abort() {
    if (this.#socket) this.#socket.close();
    else this.#controller.abort();
  }
}

let numbers = 0;

/** Of something that the wasm is to do, and may take its time for. */
export const number = () => (numbers += 1);

/** The wasm panicked: nothing of it may be called any more. */
class Left extends Error {
  /** @param {unknown} error */
  constructor(error) {
    super("the wasm panicked", { cause: error });
    if (error instanceof Error) this.name = error.name;
  }
}

/**
 * Calls into the wasm where nobody but a promise or a socket would see it panic. As an "error" event that is what it is anywhere
 * else: the end of this instance.
 * @param {() => void} call
 */
export function enter(call) {
  try {
    call();
  } catch (error) {
    // workers-types does not know that workerd has this event.
    /** @type {EventTarget} */ (/** @type {unknown} */ (globalThis)).dispatchEvent(new ErrorEvent("error", { error }));
    throw new Left(error);
  }
}
