// @ts-check
// A conversation with an executor, whole, on this side of the wasm: each crossing costs more than all that is done here.

/** An order or a report is one line. */
const encoder = new TextEncoder();

/** @param {string} text */
export const line = (text) => encoder.encode(`${text}\n`);

/**
 * Hands over each line as it comes.
 * @param {ReadableStream<Uint8Array> | null} stream
 * @param {(line: string) => void} take
 */
export async function eachLine(stream, take) {
  const reader = stream?.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { done: true };
    if (done) break;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(take);
  }
  if (rest !== "") take(rest);
}

/**
 * Opens a conversation. `heard` gets each report as it comes; `over` comes last, with a reason if the conversation broke.
 * @param {Fetcher} executor
 * @param {number} id
 * @param {(id: number, report: string) => void} heard
 * @param {(id: number, reason?: string) => void} over
 */
export function ask(executor, id, heard, over) {
  const controller = new AbortController();
  const { readable, writable } = new IdentityTransformStream();
  const listen = async () => {
    const init = { method: "POST", body: readable, signal: controller.signal };
    const response = await executor.fetch("http://executor/execute", init);
    if (response.status !== 200) throw new Error(`the executor answered with status ${response.status}`);
    await eachLine(response.body, (report) => enter(() => heard(id, report)));
  };
  listen().then(
    () => enter(() => over(id)),
    (error) => error instanceof Left || enter(() => over(id, String(error?.message ?? error))),
  );
  return new Conversation(controller, writable.getWriter());
}

class Conversation {
  #controller;
  #writer;

  /** @param {AbortController} controller @param {WritableStreamDefaultWriter<Uint8Array>} writer */
  constructor(controller, writer) {
    this.#controller = controller;
    this.#writer = writer;
  }

  /** Whoever cannot be told is not there: the answer breaks as well, and that is heard of. @param {string} order */
  send(order) {
    this.#writer.write(line(order)).catch(() => {});
  }

  /** Nothing more to say: the executor ends when it has answered. */
  finish() {
    this.#writer.close().catch(() => {});
  }

  /** Whatever the executor is at, it ends now. */
  abort() {
    this.#controller.abort();
  }
}

/** The wasm panicked: nothing of it may be called any more. */
class Left extends Error {}

/**
 * A panic here would only reject a promise. As an "error" event it is what it is anywhere else: the end of this instance.
 * @param {() => void} call
 */
function enter(call) {
  try {
    call();
  } catch (error) {
    // workers-types does not know that workerd has this event.
    /** @type {EventTarget} */ (/** @type {unknown} */ (globalThis)).dispatchEvent(new ErrorEvent("error", { error }));
    throw new Left();
  }
}
