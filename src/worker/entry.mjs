// @ts-check
// The door of both Workers. All decisions are in the wasm; this file only makes sure that a caller always gets an answer.
//
// Why it is needed: a Rust panic inside an async handler unwinds nothing. The microtask that polled the future throws, workerd
// reports it as a global "error" event, and the promise of that handler, with those of every other call that lives in the
// same wasm memory, stays pending for ever. worker-build's shim builds a new instance at the next call, so that event is the
// end of every call in flight, and here it rejects them.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import { serve } from "./platform/executor_server.mjs";
import { handleRequest, handleText } from "./platform/object_request.mjs";
import WasmEntry, { BreakerObject as WasmBreakerObject, RunObject as WasmRunObject } from "../../build/index.js";

/** Longest an API call may take: the longest long-poll is 30 s, and nothing else waits for a task. */
const CEILING_MS = 120_000;

/** A run whose alarm handler failed looks again after this long: the platform gives up after six failed alarms. */
const ALARM_AGAIN_MS = 10_000;

/** After so many panics in a row the run is given up: it would never end. */
const PANICS_MOST = 5;

/**
 * A stack overflow, whose stack pointer is never put back, or a closure that was left in the middle: the queue of all futures
 * of the instance may be one.
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
  // The shim only knows a trap, and would go on with an instance that is damaged in another way.
  if (isDamage(error)) {
    isolate.dispatchEvent(new ErrorEvent("error", { error: new WebAssembly.RuntimeError("damaged") }));
    return;
  }
  // Anything else is no panic, e.g. a callback of the instance before this one that comes too late.
  if (!(error instanceof WebAssembly.RuntimeError)) return;
  for (const reject of callsInFlight) reject(error);
  callsInFlight.clear();
});

/**
 * The outcome of `call`, or a rejection as soon as its wasm instance is gone or `ceilingMs` have passed.
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
 * As `bounded`, but a failure is an answer. It carries no detail, and the log only the kind of error: a message may quote an input.
 * @param {string} handler
 * @param {() => Promise<Response>} call
 * @param {number} [ceilingMs]
 */
async function answered(handler, call, ceilingMs) {
  try {
    return await bounded(call, ceilingMs);
  } catch (error) {
    logFailure(handler, error);
    const message = "internal error; the request may or may not have taken effect";
    return Response.json({ error: { code: "internal", message } }, { status: 500 });
  }
}

/** @param {string} handler @param {unknown} error */
function logFailure(handler, error) {
  const kind = error instanceof Error ? error.name : typeof error;
  console.error(JSON.stringify({ level: "error", event: "handler_failed", handler, error: kind }));
}

/**
 * The wasm as it stands: the shim's proxy, which makes itself a new instance after a panic. One for the isolate, because
 * nothing that is called through it looks at the request it was made in.
 * @type {InstanceType<typeof WasmEntry> | undefined}
 */
let wasm;

export default class Entry extends WorkerEntrypoint {
  /** @param {Request} request */
  fetch(request) {
    if (this.env.CURFEW_ROLE !== "executor") {
      return answered("fetch", () => new WasmEntry(this.ctx, this.env).fetch(request), CEILING_MS);
    }
    wasm ??= new WasmEntry(this.ctx, this.env);
    const instance = wasm;
    // Text in, text out. No ceiling: a task's deadlines are its own, and the coordinator has its alarm.
    /** @type {import("./platform/executor_server.mjs").Executor} */
    const executor = {
      execute: (id, order, sink) => instance.execute(id, order, this.env, sink),
      cancel: (id) => instance.cancel(id),
    };
    return serve(request, executor, callsInFlight, (error) => logFailure("execute", error));
  }

  // A rejection makes the platform deliver the batch again.
  /** @param {MessageBatch} batch */
  queue(batch) {
    // Tasks take as long as they take, up to the platform's own limit.
    const ceiling = batch.queue === "curfew-tasks" ? undefined : CEILING_MS;
    return bounded(() => new WasmEntry(this.ctx, this.env).queue(batch), ceiling);
  }

  // The next minute brings the next pass: one that failed is logged and not made again.
  /** @param {ScheduledController} controller */
  async scheduled(controller) {
    if (this.env.CURFEW_ROLE === "executor") return;
    try {
      await bounded(() => new WasmEntry(this.ctx, this.env).scheduled(controller), CEILING_MS);
    } catch (error) {
      logFailure("scheduled", error);
    }
  }
}

export class RunObject extends DurableObject {
  #wasm;
  /** Of the alarm, one after another. */
  #panics = 0;

  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env);
    // The shim's proxy: after a panic it makes itself a new Rust object, which loads the run from SQLite.
    this.#wasm = new WasmRunObject(ctx, env);
  }

  /** @param {Request} request */
  fetch(request) {
    return answered("RunObject.fetch", () => handleRequest(this.#wasm, request), CEILING_MS);
  }

  async alarm() {
    try {
      await bounded(() => this.#wasm.alarm());
      this.#panics = 0;
    } catch (error) {
      logFailure("RunObject.alarm", error);
      if (error instanceof WebAssembly.RuntimeError) this.#panics += 1;
      if (this.#panics >= PANICS_MOST && (await this.#isGivenUp())) return;
      await this.ctx.storage.setAlarm(Date.now() + Number(this.env.CURFEW_ALARM_AGAIN_MS ?? ALARM_AGAIN_MS));
    }
  }

  /** Whether the run has ended for it. */
  async #isGivenUp() {
    try {
      const { status } = await bounded(() => handleText(this.#wasm, JSON.stringify("abandon")), CEILING_MS);
      this.#panics = 0;
      return status === 200;
    } catch (error) {
      logFailure("RunObject.abandon", error);
      return false;
    }
  }
}

/** Lives in the executor's script, which is deployed first; the coordinator is bound to it by that name. */
export class BreakerObject extends DurableObject {
  #wasm;

  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env);
    this.#wasm = new WasmBreakerObject(ctx, env);
  }

  /** @param {Request} request */
  fetch(request) {
    return answered("BreakerObject.fetch", () => this.#wasm.fetch(request), CEILING_MS);
  }
}
