// @ts-check
// Stands in for build/index.js in entry.test.ts: handlers that fail in every way a wasm handler can. A Rust panic in an async
// handler looks exactly like `trap` here: a microtask throws inside wasm and the handler's promise stays pending.
import { WorkerEntrypoint } from "cloudflare:workers";
// @ts-ignore: a module of the test's manifest
import trapModule from "./trap.wasm";

const { trap, overflow } = new WebAssembly.Instance(trapModule, {}).exports;

// As wasm_instance.mjs does: this event says that the instance is broken.
let instancesBroken = 0;
let hanging = 0;
const isolate = /** @type {EventTarget} */ (/** @type {unknown} */ (globalThis));
isolate.addEventListener("error", (event) => {
  if (/** @type {ErrorEvent} */ (event).error instanceof WebAssembly.RuntimeError) instancesBroken += 1;
});

/** @param {any} wasmFunction @returns {Promise<Response>} */
function panic(wasmFunction) {
  queueMicrotask(() => wasmFunction());
  return new Promise(() => {});
}

/** @param {string} path @returns {Response | Promise<Response>} */
function handle(path) {
  if (path.endsWith("/panic")) return panic(trap);
  if (path.endsWith("/overflow")) return panic(overflow);
  if (path.endsWith("/dropped")) {
    queueMicrotask(() => {
      throw new Error("closure invoked recursively or after being dropped");
    });
    return new Promise(() => {});
  }
  if (path.endsWith("/throw")) throw new Error("detail that nobody may see");
  if (path.endsWith("/hang")) {
    // With a timer pending the runtime cannot tell that this request will never be answered.
    setInterval(() => {}, 1000);
    hanging += 1;
    return new Promise(() => {});
  }
  return Response.json({ instancesBroken, hanging });
}

export default class extends WorkerEntrypoint {
  /** @param {Request} request */
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith("/object/")) return handle(pathname);
    const object = this.env.RUNS.get(this.env.RUNS.idFromName("one"));
    return object.fetch("http://run/requests/2", { method: "POST", body: pathname });
  }

  async scheduled() {
    await panic(trap);
  }

  /** @param {number} id @param {string} order @param {any} _env @param {import("../../../src/worker/platform/executor_server.mjs").ReportSink} sink */
  execute(id, order, _env, sink) {
    if (order === "panic") /** @type {any} */ (trap)();
    if (order === "fail") sink.fail("detail that nobody may see");
    if (order === "hanging") return sink.report(id, String(hanging));
    // Or the runtime would see that this order will never be answered.
    if (order === "hang alone") setInterval(() => {}, 1000);
    if (order.startsWith("hang")) hanging += 1;
    else sink.report(id, `${order}: done`);
  }

  cancel() {
    hanging -= 1;
  }
}

export class RunObject {
  /** @param {DurableObjectState} state */
  constructor(state) {
    this.state = state;
    this.alarms = 0;
    /** @type {number | undefined} After how many of them it was given up. */
    this.abandoned = undefined;
  }

  /** @type {import("../../../src/worker/platform/object_request.mjs").RequestHandler["handle_request"]} */
  handle_request(_number, path, sink) {
    const answer = (/** @type {Response} */ response) => response.text().then((text) => sink.respond(response.status, text, ""));
    if (path.endsWith("/set-alarm")) this.state.storage.setAlarm(Date.now());
    if (path === JSON.stringify({ request: "abandon" })) this.abandoned = this.alarms;
    if (!path.endsWith("/object/alarm")) return void Promise.resolve(handle(path)).then(answer);
    const { alarms, abandoned } = this;
    this.state.storage.getAlarm().then((alarm) => answer(Response.json({ alarm, alarms, abandoned })));
  }

  alarm() {
    this.alarms += 1;
    return panic(trap);
  }
}

/** Nothing here calls it; the entry looks for it. */
export class BreakerObject {}
