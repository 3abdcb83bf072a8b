// @ts-check
// What entry.mjs imports as build/index.js: the exports of the wasm, behind a guard that replaces an instance which can no longer
// be used. scripts/build.mjs bundles this file with the output of wasm-bindgen.
//
// A Rust panic is a trap: memory stays as it was in the middle of a call, so every later call into that instance is unsafe. The
// guard creates a new instance before the next call. Objects of the old instance are constructed again, from SQLite.
// @ts-ignore: the build resolves this name to the output of wasm-bindgen
import * as wasm from "curfew:wasm";

/** Kept by the `worker` crate: its panic hook sets `criticalError`, each new instance increments `instanceId`. */
const state = wasm.__worker_init_state();

// Most frames of a panic belong to the panic itself; the default of ten would show no other.
/** @type {any} */ (Error).stackTraceLimit = 100;

// workers-types does not declare that workerd dispatches "error" here. A trap in a microtask arrives this way only.
const isolate = /** @type {EventTarget} */ (/** @type {unknown} */ (globalThis));
isolate.addEventListener("error", (event) => recordTrap(/** @type {ErrorEvent} */ (event).error));

/** @param {unknown} error */
function recordTrap(error) {
  if (!(error instanceof WebAssembly.RuntimeError)) return;
  console.error(JSON.stringify({ level: "error", event: "wasm_trapped", stack: error.stack }));
  state.criticalError = true;
}

/**
 * The result of `call`, which runs in a usable instance.
 * @template T
 * @param {() => T} call
 * @returns {T}
 */
function guarded(call) {
  if (state.criticalError) {
    console.log(JSON.stringify({ level: "warn", event: "wasm_replaced" }));
    wasm.__wbg_reset_state();
    state.criticalError = false;
  }
  try {
    return call();
  } catch (error) {
    recordTrap(error);
    throw error;
  }
}

/** The handlers of a Worker, and the executor's functions. */
export default class Entry {
  #ctx;
  #env;

  /** @param {ExecutionContext} ctx @param {any} env */
  constructor(ctx, env) {
    this.#ctx = ctx;
    this.#env = env;
  }

  /** @param {Request} request @returns {Promise<Response>} */
  fetch(request) {
    return guarded(() => wasm.fetch(request, this.#env, this.#ctx));
  }

  /** The request of a bound Worker. @param {Request} request @param {string} worker its name @returns {Promise<Response>} */
  fetchBound(request, worker) {
    return guarded(() => wasm.fetchBound(request, this.#env, worker));
  }

  /** @param {MessageBatch} batch @returns {Promise<void>} */
  queue(batch) {
    return guarded(() => wasm.queue(batch, this.#env, this.#ctx));
  }

  /** @param {ScheduledController} controller @returns {Promise<void>} */
  scheduled(controller) {
    return guarded(() => wasm.scheduled(controller, this.#env, this.#ctx));
  }

  /** @param {number} id @param {string} order @param {any} env @param {any} sink @returns {void} */
  execute(id, order, env, sink) {
    guarded(() => wasm.execute(id, order, env, sink));
  }

  /** @param {number} id @param {string} order @param {any} env @param {any} sink @returns {void} */
  notify(id, order, env, sink) {
    guarded(() => wasm.notify(id, order, env, sink));
  }

  /** @param {number} id @returns {void} */
  cancel(id) {
    guarded(() => wasm.cancel(id));
  }

  /** @param {number} id @returns {string | undefined} */
  progress(id) {
    return guarded(() => wasm.progress(id));
  }
}

/**
 * A class with the methods of the Rust class. Its object is constructed again when the instance it belonged to was replaced.
 * @param {any} RustClass
 * @returns {any}
 */
function rebuilt(RustClass) {
  class Rebuilt {
    #args;
    #object;
    #instanceId;

    /** @param {any[]} args */
    constructor(...args) {
      this.#args = args;
      this.#object = guarded(() => new RustClass(...args));
      this.#instanceId = state.instanceId;
    }

    /** @param {string} method @param {any[]} args */
    call(method, args) {
      return guarded(() => {
        if (this.#instanceId !== state.instanceId) {
          this.#object = new RustClass(...this.#args);
          this.#instanceId = state.instanceId;
        }
        return this.#object[method](...args);
      });
    }
  }
  for (const method of Object.getOwnPropertyNames(RustClass.prototype)) {
    if (method === "constructor") continue;
    const value = /** @this {Rebuilt} */ function (/** @type {any[]} */ ...args) {
      return this.call(method, args);
    };
    Object.defineProperty(Rebuilt.prototype, method, { value });
  }
  return Rebuilt;
}

export const RunObject = rebuilt(wasm.RunObject);
export const BreakerObject = rebuilt(wasm.BreakerObject);
