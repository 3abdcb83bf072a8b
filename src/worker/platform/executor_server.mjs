// @ts-check
// The executor's side of a connection; executor_client.mjs has the coordinator's.
import { HEARTBEAT_HEADER, NOTIFY_PATH, PROGRESS_HEADER, receiveLines, sendLines } from "./executor_client.mjs";
import { Clock } from "./clock.mjs";
import { callWasm, nextId } from "./wasm_call.mjs";

/**
 * Runs tasks. A task has an id, and reports under it: before `execute` returns, if it waits for nothing. `progress` returns the
 * line to send for a task whose progress has changed.
 * @typedef {{
 *   execute: (id: number, order: string, sink: ReportSink) => void,
 *   notify: (id: number, order: string, sink: ReportSink) => void,
 *   cancel: (id: number) => void,
 *   progress?: (id: number) => string | undefined,
 * }} Executor
 *
 * @typedef {{
 *   report: (id: number, report: string) => void,
 *   fail: (message: string) => void,
 *   clock: Clock,
 * }} ReportSink
 */

/**
 * Serves one order, or one notification, in the body of a request, with its report in the response; or, over a WebSocket, orders as they come, each
 * reported as soon as its task ends, so that a slow task does not delay a fast one. The tasks end when the coordinator closes the
 * connection: nothing else keeps the invocation alive.
 * @param {Request} request
 * @param {Executor} executor
 * @param {Set<(reason: Error) => void>} inFlight called when the wasm instance has panicked
 * @param {(error: unknown) => void} onError called with what broke the connection
 */
export async function serve(request, executor, inFlight, onError) {
  if (request.headers.get("upgrade") === "websocket") {
    return serveSocket(request.headers, executor, inFlight, onError);
  }
  const { promise, resolve, reject } = Promise.withResolvers();
  const clock = new Clock();
  const id = nextId();
  const end = () => {
    inFlight.delete(reject);
    clock.stop();
  };
  inFlight.add(reject);
  // After an abort nothing below runs any more.
  request.signal.addEventListener("abort", () => {
    executor.cancel(id);
    end();
  });
  try {
    const order = await request.text();
    /** @type {ReportSink} */
    const sink = { report: (_, report) => resolve(report), fail: reject, clock };
    const isNotification = new URL(request.url).pathname === NOTIFY_PATH;
    callWasm(() => (isNotification ? executor.notify(id, order, sink) : executor.execute(id, order, sink)));
    return new Response(await promise);
  } catch (error) {
    onError(error);
    return new Response(null, { status: 500 });
  } finally {
    end();
  }
}

/** Heartbeats are not sent more often, whatever the coordinator asks for. */
const HEARTBEAT_MIN_MS = 100;
const PROGRESS_MIN_MS = 1_000;

/**
 * @param {Headers} wanted what the coordinator asks for. One of an older build would take for a report what it does not ask for
 * @param {Executor} executor
 * @param {Set<(reason: Error) => void>} inFlight
 * @param {(error: unknown) => void} onError
 */
function serveSocket(wanted, executor, inFlight, onError) {
  const { 0: theirs, 1: ours } = new WebSocketPair();
  /** @type {string[]} */
  let unsent = [];
  /** @type {Set<number>} */
  const running = new Set();
  let isExecuting = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const flush = () => {
    if (timer !== undefined) clearTimeout(timer);
    timer = undefined;
    if (unsent.length > 0) sendLines(ours, unsent.join("\n"));
    unsent = [];
  };
  // The coordinator sees the connection break, and knows which orders have no report.
  /** @param {unknown} error */
  const fail = (error) => {
    onError(error);
    ours.close(1011, "broken");
  };
  /** @type {ReportSink} */
  const sink = {
    clock: new Clock(),
    fail,
    report: (id, report) => {
      running.delete(id);
      unsent.push(report);
      if (isExecuting) return;
      if (running.size === 0) flush();
      // Others may end at the same moment, and every message costs the coordinator a commit.
      else timer ??= setTimeout(flush, 0);
    },
  };
  /** @param {string} lines */
  const onLines = (lines) => {
    isExecuting = true;
    for (const order of lines.split("\n")) {
      const id = nextId();
      running.add(id);
      callWasm(() => executor.execute(id, order, sink));
    }
    isExecuting = false;
    flush();
  };
  // A promise, because it is rejected while another request is handled, which may not touch this one's socket.
  const { promise: panicked, reject } = Promise.withResolvers();
  panicked.catch(fail);
  inFlight.add(reject);
  receiveLines(ours, onLines, fail);
  ours.addEventListener("close", () => {
    inFlight.delete(reject);
    running.forEach(executor.cancel);
    sink.clock.stop();
    ours.close();
  });
  ours.accept();
  /** @type {Record<string, string>} */
  const headers = {};
  /** @param {string} header @param {number} minMs @param {() => void} call called as often as the header says */
  const repeat = (header, minMs, call) => {
    const wantedMs = Number(wanted.get(header));
    if (!(wantedMs > 0)) return;
    const everyMs = Math.max(wantedMs, minMs);
    headers[header] = String(everyMs);
    const again = () => {
      call();
      sink.clock.set(everyMs, again);
    };
    sink.clock.set(everyMs, again);
  };
  repeat(HEARTBEAT_HEADER, HEARTBEAT_MIN_MS, () => sendLines(ours, ""));
  repeat(PROGRESS_HEADER, PROGRESS_MIN_MS, () => {
    try {
      callWasm(() => running.forEach((id) => {
        const line = executor.progress?.(id);
        if (line) unsent.push(line);
      }));
      flush();
    } catch (error) {
      fail(error);
    }
  });
  return new Response(null, { status: 101, webSocket: theirs, headers });
}
