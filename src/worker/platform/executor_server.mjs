// @ts-check
// The executor's side of a conversation; ask.mjs has the coordinator's.
import { HEARTBEAT_HEADER, eachMessage, enter, number, say } from "./executor_client.mjs";
import { Clock } from "./clock.mjs";

/**
 * Who runs tasks. Each order has a number, and its report comes with that: at once, where the task waits for nothing.
 * @typedef {{
 *   execute: (number: number, order: string, asker: Asker) => void,
 *   leave: (number: number) => void,
 * }} Executor
 *
 * @typedef {{
 *   answer: (number: number, report: string) => void,
 *   fail: (message: string) => void,
 *   clock: Clock,
 * }} Asker
 */

/**
 * One order in the body, one report in the answer; or, for whoever asks for a WebSocket, orders as they come for as long as the
 * coordinator has more, each answered as soon as its task ends: a slow one must not hold up a fast one. Tasks that end in the
 * same moment are answered together, so that they cost the coordinator one turn. Whoever asked and goes away ends the tasks:
 * nothing else keeps the invocation alive.
 * @param {Request} request
 * @param {Executor} executor
 * @param {Set<(reason: Error) => void>} inFlight who is told when the executor is no more
 * @param {(error: unknown) => void} note what broke the conversation
 */
export async function reports(request, executor, inFlight, note) {
  if (request.headers.get("upgrade") === "websocket") {
    return converse(Number(request.headers.get(HEARTBEAT_HEADER)), executor, inFlight, note);
  }
  const { promise, resolve, reject } = Promise.withResolvers();
  const clock = new Clock();
  const task = number();
  const end = () => {
    inFlight.delete(reject);
    clock.stop();
  };
  inFlight.add(reject);
  // Whoever asked has gone: nothing below is reached any more.
  request.signal.addEventListener("abort", () => {
    executor.leave(task);
    end();
  });
  try {
    const order = await request.text();
    /** @type {Asker} */
    const asker = { answer: (_, report) => resolve(report), fail: reject, clock };
    enter(() => executor.execute(task, order, asker));
    return new Response(await promise);
  } catch (error) {
    note(error);
    return new Response(null, { status: 500 });
  } finally {
    end();
  }
}

/** However often it is asked to, nobody says more often that it lives. */
const HEARTBEAT_MIN_MS = 100;

/**
 * @param {number} heartbeatMs how often it is to be said that this executor lives; 0 to a coordinator of an older build, which
 *   would take it for a report
 * @param {Executor} executor
 * @param {Set<(reason: Error) => void>} inFlight
 * @param {(error: unknown) => void} note
 */
function converse(heartbeatMs, executor, inFlight, note) {
  const { 0: theirs, 1: ours } = new WebSocketPair();
  /** @type {string[]} */
  let ended = [];
  /** @type {Set<number>} */
  const running = new Set();
  let isTaking = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const write = () => {
    if (timer !== undefined) clearTimeout(timer);
    timer = undefined;
    if (ended.length > 0) say(ours, ended.join("\n"));
    ended = [];
  };
  // The coordinator sees the answer break off, and which orders have none.
  /** @param {unknown} error */
  const fail = (error) => {
    note(error);
    ours.close(1011, "broken");
  };
  /** @type {Asker} */
  const asker = {
    clock: new Clock(),
    fail,
    answer: (task, report) => {
      running.delete(task);
      ended.push(report);
      if (isTaking) return;
      if (running.size === 0) write();
      // Others may end in a moment, and every message is a commit of the coordinator's.
      else timer ??= setTimeout(write, 0);
    },
  };
  /** @param {string} lines */
  const take = (lines) => {
    isTaking = true;
    for (const order of lines.split("\n")) {
      const task = number();
      running.add(task);
      enter(() => executor.execute(task, order, asker));
    }
    isTaking = false;
    write();
  };
  // A promise, because whoever tells is at work on another request, and may not touch what belongs to this one.
  const { promise: gone, reject } = Promise.withResolvers();
  gone.catch(fail);
  inFlight.add(reject);
  eachMessage(ours, take, fail);
  ours.addEventListener("close", () => {
    inFlight.delete(reject);
    running.forEach(executor.leave);
    asker.clock.stop();
    ours.close();
  });
  ours.accept();
  if (!(heartbeatMs > 0)) return new Response(null, { status: 101, webSocket: theirs });
  const everyMs = Math.max(heartbeatMs, HEARTBEAT_MIN_MS);
  const beat = () => {
    say(ours, "");
    asker.clock.set(everyMs, beat);
  };
  asker.clock.set(everyMs, beat);
  return new Response(null, { status: 101, webSocket: theirs, headers: { [HEARTBEAT_HEADER]: String(everyMs) } });
}
