// @ts-check
// The coordinator's connection to an executor. All of it is done on this side of the wasm, because a crossing costs more than
// everything that is done here. A WebSocket message costs one turn of the receiver; a chunk of a stream costs one of each side.
import { WasmPanicked, callWasm } from "./wasm_call.mjs";

/** The platform limits the size of a message, so longer texts are sent in pieces. */
const PIECE = 256 * 1024;

const EXECUTE = "http://executor/execute";

/** Where notifications are sent; `workerd.rs` has the same path. */
export const NOTIFY_PATH = "/notify";

/** In the request: how often the executor shall send a heartbeat. In the response: that it does. */
export const HEARTBEAT_HEADER = "curfew-heartbeat-ms";

/** In the request: how often the executor may send the progress of an attempt. In the response: that it does. */
export const PROGRESS_HEADER = "curfew-progress-ms";

/**
 * Sends orders or reports, one a line.
 * @param {WebSocket} socket
 * @param {string} lines
 */
export function sendLines(socket, lines) {
  try {
    let at = 0;
    while (lines.length - at > PIECE) {
      // A piece does not end between the two halves of a surrogate pair: each half would arrive as a replacement character.
      const isSplit = (lines.charCodeAt(at + PIECE - 1) & 0xfc00) === 0xd800;
      const end = at + PIECE - Number(isSplit);
      socket.send(lines.slice(at, end));
      at = end;
    }
    socket.send(`${lines.slice(at)}\n`);
  } catch {
    // The socket is closed. Its "close" or "error" event handles that.
  }
}

/**
 * Calls `onLines` with the lines that arrived together, until it throws.
 * @param {WebSocket} socket
 * @param {(lines: string) => void} onLines
 * @param {(error: unknown) => void} onError
 */
export function receiveLines(socket, onLines, onError) {
  let rest = "";
  let hasFailed = false;
  socket.addEventListener("message", ({ data }) => {
    rest += data;
    if (hasFailed || !rest.endsWith("\n")) return;
    const lines = rest.slice(0, -1);
    rest = "";
    try {
      onLines(lines);
    } catch (error) {
      hasFailed = true;
      onError(error);
    }
  });
}

/**
 * Opens a connection for any number of orders and asks the executor for a heartbeat every `heartbeatMs`, and for the progress of
 * each attempt at most every `progressMs`. `onReports` gets the reports and the progress that arrived together, one a line.
 * `onClosed` is called last, with a reason if the connection broke.
 * @param {Fetcher} executor
 * @param {number} id
 * @param {number} heartbeatMs
 * @param {number} progressMs
 * @param {(id: number, reports: string) => void} onReports
 * @param {(id: number, reason?: string) => void} onClosed
 */
export function connect(executor, id, heartbeatMs, progressMs, onReports, onClosed) {
  const connection = new Connection();
  const headers = { [HEARTBEAT_HEADER]: String(heartbeatMs), [PROGRESS_HEADER]: String(progressMs) };
  const closed = connection.run(executor, headers, (reports) => callWasm(() => onReports(id, reports)));
  callWhenClosed(closed, id, onClosed);
  return connection;
}

/**
 * Like `connect`, for a single order that no other follows: a request costs half of what a WebSocket does.
 * @param {Fetcher} executor
 * @param {number} id
 * @param {string} order
 * @param {(id: number, report: string) => void} onReport
 * @param {(id: number, reason?: string) => void} onClosed
 */
export function sendOne(executor, id, order, onReport, onClosed) {
  const controller = new AbortController();
  const run = async () => {
    const init = { method: "POST", body: order, signal: controller.signal };
    const response = await executor.fetch(EXECUTE, init);
    const { ok, status } = response;
    if (!ok) throw new Error(`the executor answered with status ${status}`);
    const report = await response.text();
    callWasm(() => onReport(id, report));
  };
  callWhenClosed(run(), id, onClosed);
  // The attempt's own deadline is short, so no heartbeats are needed.
  return { send: () => {}, finish: () => {}, abort: () => controller.abort(), silentMs: () => 0 };
}

/** @param {Promise<void>} closed @param {number} id @param {(id: number, reason?: string) => void} onClosed */
function callWhenClosed(closed, id, onClosed) {
  closed.then(
    () => callWasm(() => onClosed(id)),
    (error) => error instanceof WasmPanicked || callWasm(() => onClosed(id, String(error?.message ?? error))),
  );
}

class Connection {
  #controller = new AbortController();
  /** @type {WebSocket | undefined} */
  #socket;
  /** Orders that were sent before the socket was open. @type {string[]} */
  #unsent = [];
  #isFinished = false;
  /** False for an executor of an older build, which sends no heartbeats. True until it has responded. */
  #hasHeartbeats = true;
  #lastMessageAt = Date.now();

  /**
   * Resolves when the connection is closed.
   * @param {Fetcher} executor
   * @param {Record<string, string>} headers what the executor is asked for
   * @param {(reports: string) => void} onReports
   */
  async run(executor, headers, onReports) {
    const init = { headers: { upgrade: "websocket", ...headers }, signal: this.#controller.signal };
    const response = await executor.fetch(EXECUTE, init);
    const { status, webSocket: socket } = response;
    if (!socket) throw new Error(`the executor answered with status ${status}`);
    this.#hasHeartbeats = response.headers.has(HEARTBEAT_HEADER);
    this.#lastMessageAt = Date.now();
    const { promise, resolve, reject } = Promise.withResolvers();
    const onLines = (/** @type {string} */ lines) => {
      this.#lastMessageAt = Date.now();
      // A heartbeat is an empty line.
      if (lines !== "") onReports(lines);
    };
    receiveLines(socket, onLines, (error) => {
      socket.close();
      reject(error);
    });
    socket.addEventListener("close", resolve);
    socket.addEventListener("error", ({ error, message }) => reject(error ?? new Error(message)));
    socket.accept();
    this.#socket = socket;
    for (const orders of this.#unsent) sendLines(socket, orders);
    if (this.#isFinished) socket.close();
    await promise;
  }

  /** @param {string} orders */
  send(orders) {
    if (this.#socket) sendLines(this.#socket, orders);
    else this.#unsent.push(orders);
  }

  /** The time since the last message; 0 for an executor that sends no heartbeats. */
  silentMs() {
    return this.#hasHeartbeats ? Date.now() - this.#lastMessageAt : 0;
  }

  /** Closes the connection: all orders have their reports. */
  finish() {
    this.#isFinished = true;
    this.#socket?.close();
  }

  /** Closes the connection, which ends the tasks that the executor is running for it. */
  abort() {
    if (this.#socket) this.#socket.close();
    else this.#controller.abort();
  }
}
