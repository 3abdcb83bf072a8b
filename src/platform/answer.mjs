// @ts-check
// The executor's side of a conversation; ask.mjs has the coordinator's.
import { eachLine, say } from "./ask.mjs";

/**
 * One order in the body, one report in the answer; or, for whoever asks for a WebSocket, orders as they come for as long as the
 * coordinator has more, each answered as soon as its task ends: a slow one must not hold up a fast one. Tasks that end in the
 * same moment are answered together, so that they cost the coordinator one turn. Whoever asked and goes away ends the tasks:
 * nothing else keeps the invocation alive.
 * @param {Request} request
 * @param {(order: string) => string | Promise<string>} execute
 * @param {(error: unknown) => void} note what broke the conversation
 */
export async function reports(request, execute, note) {
  if (request.headers.get("upgrade") !== "websocket") {
    try {
      return new Response(await execute(await request.text()));
    } catch (error) {
      note(error);
      return new Response(null, { status: 500 });
    }
  }
  const { 0: theirs, 1: ours } = new WebSocketPair();
  /** @type {string[]} */
  let ended = [];
  /** Under way. */
  let running = 0;
  /** What ended goes out when this turn is over. */
  let isDue = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const write = () => {
    if (timer !== undefined) clearTimeout(timer);
    timer = undefined;
    isDue = false;
    if (ended.length > 0) say(ours, ended.join("\n"));
    ended = [];
  };
  /** @param {string} report */
  const answer = (report) => {
    ended.push(report);
    if (isDue) return;
    isDue = running === 0;
    if (isDue) queueMicrotask(write);
    // Others may end in a moment, and every message is a commit of the coordinator's.
    else timer ??= setTimeout(write, 0);
  };
  // The coordinator sees the answer break off, and which orders have none.
  /** @param {unknown} error */
  const broken = (error) => {
    note(error);
    ours.close(1011, "broken");
  };
  const take = (/** @type {string} */ order) => {
    const task = execute(order);
    if (typeof task === "string") return answer(task);
    running += 1;
    const end = (/** @type {string} */ report) => {
      running -= 1;
      answer(report);
    };
    task.then(end).catch(broken);
  };
  eachLine(ours, take, broken);
  ours.addEventListener("close", () => ours.close());
  ours.accept();
  return new Response(null, { status: 101, webSocket: theirs });
}
