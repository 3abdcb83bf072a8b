// @ts-check
// The executor's side of a conversation; ask.mjs has the coordinator's.
import { eachLine, line } from "./ask.mjs";

/**
 * Runs orders as they come, for as long as the coordinator has more, and answers each as soon as its task ends: a slow one
 * must not hold up a fast one. What ends while a write is under way goes out with the next, so that tasks that end together
 * cost the coordinator one turn. Whoever reads this and goes away ends the tasks: nothing else keeps the invocation alive.
 * @param {ReadableStream<Uint8Array> | null} orders
 * @param {(order: string) => string | Promise<string>} execute
 * @param {(error: unknown) => void} note what broke the conversation
 */
export function reports(orders, execute, note) {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  let ended = "";
  /** @type {Promise<void> | undefined} */
  let writing;
  async function write() {
    // After the tasks that end in this same moment.
    await undefined;
    while (ended !== "") {
      const batch = line(ended.slice(1));
      ended = "";
      await writer.write(batch);
    }
    writing = undefined;
  }
  /** @param {string} report */
  const answer = (report) => {
    ended += `\n${report}`;
    return (writing ??= write());
  };
  // The coordinator sees the answer break off, and which orders have none.
  /** @param {unknown} error */
  const broken = (error) => {
    note(error);
    writer.abort(error).catch(() => {});
  };
  /** @type {Promise<void>[]} */
  const tasks = [];
  const take = (/** @type {string} */ order) => {
    const task = execute(order);
    tasks.push(typeof task === "string" ? answer(task) : task.then(answer).catch(broken));
  };
  eachLine(orders, take)
    .then(() => Promise.all(tasks))
    .then(() => writer.close())
    .catch(broken);
  return new Response(readable);
}
