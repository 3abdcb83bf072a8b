// @ts-check
// The coordinator, whose wasm instance counts as trapped after a request to /__trap.
import Coordinator from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

export default class extends Coordinator {
  /** @param {Request} request */
  async fetch(request) {
    if (new URL(request.url).pathname !== "/__trap") return super.fetch(request);
    // As workerd reports a trap in a microtask.
    const error = new WebAssembly.RuntimeError("unreachable");
    /** @type {EventTarget} */ (/** @type {unknown} */ (globalThis)).dispatchEvent(new ErrorEvent("error", { error }));
    return new Response("trapped");
  }
}
