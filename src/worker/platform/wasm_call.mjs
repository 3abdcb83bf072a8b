// @ts-check
// Calls from JavaScript into the wasm.

let lastId = 0;

/** Names one piece of work that the wasm may finish later. */
export const nextId = () => (lastId += 1);

/** The wasm panicked: no function of that instance may be called again. */
export class WasmPanicked extends Error {
  /** @param {unknown} error */
  constructor(error) {
    super("the wasm panicked", { cause: error });
    if (error instanceof Error) this.name = error.name;
  }
}

/**
 * Calls into the wasm from a promise or a socket, which would swallow a panic. The "error" event reports it as workerd reports
 * every other panic: it is the end of this instance.
 * @param {() => void} call
 */
export function callWasm(call) {
  try {
    call();
  } catch (error) {
    // workers-types does not know that workerd has this event.
    /** @type {EventTarget} */ (/** @type {unknown} */ (globalThis)).dispatchEvent(new ErrorEvent("error", { error }));
    throw new WasmPanicked(error);
  }
}
