// @ts-check
// The entry points of the Worker: API, queues and cron (the default one), the executor, run objects and breakers. All decisions are
// made in the wasm; this file makes sure that every caller gets a response.
//
// With CURFEW_ROLE a deployment is two Workers of the same code: "coordinator" calls the Worker that EXECUTOR is bound to, and the
// default entry point of "executor" is the executor. Without it one Worker is both.
//
// A Rust panic inside an async handler unwinds nothing. The microtask that polled the future throws, and workerd reports a global
// "error" event. The promise of that handler, and of every other call in the same wasm memory, stays pending for ever. wasm_instance.mjs
// creates a new instance at the next call, so the event ends every call in flight: it rejects them here.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import { errorResponse } from "./platform/api_response.mjs";
import { serve } from "./platform/executor_server.mjs";
import { Watchers } from "./platform/live_sockets.mjs";
import { handleRequest, handleText } from "./platform/object_request.mjs";
import { create, RunHandle } from "./platform/rpc.mjs";
import WasmEntry, { BreakerObject as WasmBreakerObject, RunObject as WasmRunObject } from "../../build/index.js";

/** The longest time of an API call. The longest long poll is 30 s, and no other call waits for a task. */
const CEILING_MS = 120_000;

/** When the alarm of a run is set again after its handler failed: the platform gives up after six failed alarms. */
const ALARM_AGAIN_MS = 10_000;

/** After so many consecutive panics the run is failed: it would never end. */
const PANICS_MAX = 5;

/**
 * A stack overflow, after which the stack pointer is not restored, or a closure that threw while it ran, which may be the queue of
 * all futures of the instance.
 * @param {unknown} error
 */
const isDamage = (error) =>
  error instanceof RangeError || (error instanceof Error && error.message.includes("closure invoked recursively or after being dropped"));

/** @type {Set<(reason: Error) => void>} */
const callsInFlight = new Set();

// workers-types does not know that workerd fires "error" here.
const isolate = /** @type {EventTarget} */ (/** @type {unknown} */ (globalThis));

isolate.addEventListener("error", (event) => {
  const { error } = /** @type {ErrorEvent} */ (event);
  // wasm_instance.mjs only recognizes a trap, and would continue to use an instance that is damaged otherwise.
  if (isDamage(error)) {
    isolate.dispatchEvent(new ErrorEvent("error", { error: new WebAssembly.RuntimeError("damaged") }));
    return;
  }
  // Any other error is not a panic, for example a late callback of the previous instance.
  if (!(error instanceof WebAssembly.RuntimeError)) return;
  for (const reject of callsInFlight) reject(error);
  callsInFlight.clear();
});

/**
 * The result of `call`, or a rejection as soon as its wasm instance has panicked or `ceilingMs` have passed.
 * @template T
 * @param {() => T | Promise<T>} call
 * @param {number} [ceilingMs]
 * @returns {Promise<T>}
 */
async function bounded(call, ceilingMs) {
  const { promise: broken, reject } = Promise.withResolvers();
  callsInFlight.add(reject);
  const ceiling = ceilingMs && setTimeout(() => reject(new Error("ceiling reached")), ceilingMs);
  try {
    return await Promise.race([call(), /** @type {Promise<never>} */ (broken)]);
  } finally {
    // The timer would keep the request alive, and the set the request's promise.
    if (ceiling) clearTimeout(ceiling);
    callsInFlight.delete(reject);
  }
}

/**
 * Like `bounded`, but a failure is a response without details. The log has only the kind of error: a message may quote an input.
 * @param {string} handler
 * @param {() => Promise<Response>} call
 * @param {number} [ceilingMs]
 */
async function responded(handler, call, ceilingMs) {
  try {
    return await bounded(call, ceilingMs);
  } catch (error) {
    logFailure(handler, error);
    const message = "internal error; the request may or may not have taken effect";
    return errorResponse({ code: "internal", message }, 500);
  }
}

/** @param {string} handler @param {unknown} error */
function logFailure(handler, error) {
  const kind = error instanceof Error ? error.name : typeof error;
  console.error(JSON.stringify({ level: "error", event: "handler_failed", handler, error: kind }));
}

/**
 * The exports of the wasm, which create a new instance after a panic. The isolate has one, because nothing that is called
 * through it depends on the request it was created in.
 * @type {InstanceType<typeof WasmEntry> | undefined}
 */
let wasm;

/**
 * @param {Request} request
 * @param {ExecutionContext} ctx
 * @param {any} env
 */
function execute(request, ctx, env) {
  wasm ??= new WasmEntry(ctx, env);
  const instance = wasm;
  // No ceiling: a task has its own deadlines, and the coordinator its alarm.
  /** @type {import("./platform/executor_server.mjs").Executor} */
  const executor = {
    execute: (id, order, sink) => instance.execute(id, order, env, sink),
    notify: (id, order, sink) => instance.notify(id, order, env, sink),
    cancel: (id) => instance.cancel(id),
    progress: (id) => instance.progress(id),
  };
  return serve(request, executor, callsInFlight, (error) => logFailure("execute", error));
}

/**
 * The bindings, with this Worker's own executor where no other is bound.
 * @param {{ exports?: any }} ctx
 * @param {any} env
 */
const withExecutor = (ctx, env) => (env.EXECUTOR || env.CURFEW_ROLE ? env : { ...env, EXECUTOR: ctx.exports.Executor });

export default class Entry extends WorkerEntrypoint {
  /** @param {Request} request */
  fetch(request) {
    if (this.env.CURFEW_ROLE === "executor") return execute(request, this.ctx, this.env);
    return responded("fetch", () => this.#wasm().fetch(request), CEILING_MS);
  }

  // The methods below are for Workers of the account that have bound this one. No request from outside reaches them.

  /**
   * A request to the API that needs no token. It is made in the name that the binding's `props` give.
   * @param {Request} request
   */
  request(request) {
    const name = String(Object(this.ctx.props).name ?? "");
    return responded("request", () => this.#wasm().fetchBound(request, name), CEILING_MS);
  }

  /** Starts a run. @param {import("./platform/rpc.mjs").CreateOptions} options */
  async create(options) {
    return this.get(await create(this.#send, options));
  }

  /** @param {string} id */
  get(id) {
    return new RunHandle(this.#send, id);
  }

  // Settings are read once per isolate, by whichever entry point is called first: all of them must see the same bindings.
  #wasm() {
    return new WasmEntry(this.ctx, withExecutor(this.ctx, this.env));
  }

  /** @type {import("./platform/rpc.mjs").Send} */
  #send = (request) => this.request(request);

  // After a rejection the platform delivers the batch again.
  /** @param {MessageBatch} batch */
  queue(batch) {
    // Tasks have no ceiling but the platform's own limit.
    const ceiling = batch.queue === "curfew-tasks" ? undefined : CEILING_MS;
    return bounded(() => this.#wasm().queue(batch), ceiling);
  }

  // A failed pass is logged and not repeated: the next one comes within a minute.
  /** @param {ScheduledController} controller */
  async scheduled(controller) {
    if (this.env.CURFEW_ROLE === "executor") return;
    try {
      await bounded(() => this.#wasm().scheduled(controller), CEILING_MS);
    } catch (error) {
      logFailure("scheduled", error);
    }
  }
}

/**
 * What Workers of the account bind. The default entry point has the same methods, but `wrangler dev` puts a proxy before that of a Worker
 * with assets, which loses the name of the caller. Here `fetch` needs no token, either. What `create` throws loses its code between two
 * `wrangler dev` all the same; the message has it.
 */
export class Api extends Entry {
  /** @param {Request} request */
  fetch(request) {
    return this.request(request);
  }
}

/** Has no route: only the coordinator's own binding, or that of another Worker of the account, reaches it. */
export class Executor extends WorkerEntrypoint {
  /** @param {Request} request */
  fetch(request) {
    return execute(request, this.ctx, this.env);
  }
}

export class RunObject extends DurableObject {
  #wasm;
  #watchers;
  /** Consecutive panics of the alarm. */
  #panics = 0;

  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env);
    // Before the wasm object, which looks for it.
    this.#watchers = new Watchers(ctx, (call) => bounded(() => handleText(this.#wasm, call), CEILING_MS));
    // After a panic it creates a new Rust object, which loads the run from SQLite.
    this.#wasm = new WasmRunObject(ctx, withExecutor(ctx, env));
  }

  /** @param {Request} request */
  fetch(request) {
    return responded("RunObject.fetch", () => handleRequest(this.#wasm, this.#watchers, request), CEILING_MS);
  }

  // The three handlers of sockets that hibernate.
  /** @param {WebSocket} socket @param {string | ArrayBuffer} message */
  webSocketMessage(socket, message) {
    this.#watchers.confirmed(socket, message);
  }

  /** @param {WebSocket} socket */
  webSocketClose(socket) {
    this.#watchers.closed(socket);
  }

  /** @param {WebSocket} socket */
  webSocketError(socket) {
    this.#watchers.closed(socket);
  }

  async alarm() {
    try {
      await bounded(() => this.#wasm.alarm());
      this.#panics = 0;
    } catch (error) {
      logFailure("RunObject.alarm", error);
      if (error instanceof WebAssembly.RuntimeError) this.#panics += 1;
      if (this.#panics >= PANICS_MAX && (await this.#abandon())) return;
      await this.ctx.storage.setAlarm(Date.now() + Number(this.env.CURFEW_ALARM_AGAIN_MS ?? ALARM_AGAIN_MS));
    }
  }

  /** Fails the run. Returns whether it has ended. */
  async #abandon() {
    try {
      const { status } = await bounded(() => handleText(this.#wasm, JSON.stringify({ request: "abandon" })), CEILING_MS);
      this.#panics = 0;
      return status === 200;
    } catch (error) {
      logFailure("RunObject.abandon", error);
      return false;
    }
  }
}

/** In a deployment of two Workers it belongs to the executor's script, which is deployed first. The coordinator is bound to it. */
export class BreakerObject extends DurableObject {
  #wasm;

  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env);
    this.#wasm = new WasmBreakerObject(ctx, env);
  }

  /** @param {Request} request */
  fetch(request) {
    return responded("BreakerObject.fetch", () => this.#wasm.fetch(request), CEILING_MS);
  }
}
