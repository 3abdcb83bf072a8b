// @ts-check
// The coordinator with injected faults: alarms that never fire (DROP_ALARMS), a queue that refuses the first message about the end and
// the first about a gate of each run (REFUSE_FIRST), and objects that do not respond to probes (those named broken-...).
import Entry, { RunObject as Run } from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

export default Entry;

/** workers-rs checks the name of the class. */
class WorkerQueue {
  #queue;
  #hasRefused = false;
  #hasRefusedGate = false;

  /** @param {Queue} queue */
  constructor(queue) {
    this.#queue = queue;
  }

  /** @param {string} message @param {any} options */
  async send(message, options) {
    if (!this.#hasRefused && message.includes('"status":"completed"')) {
      this.#hasRefused = true;
      throw new Error("the queue takes nothing now");
    }
    if (!this.#hasRefusedGate && message.includes('"gate"')) {
      this.#hasRefusedGate = true;
      throw new Error("the queue takes no gates now");
    }
    return this.#queue.send(message, options);
  }
}

export class RunObject extends Run {
  #dropsAlarms;

  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env.REFUSE_FIRST ? { ...env, INDEX_QUEUE: new WorkerQueue(env.INDEX_QUEUE) } : env);
    this.#dropsAlarms = Boolean(env.DROP_ALARMS);
  }

  /** @param {Request} request */
  async fetch(request) {
    const isProbe = (await request.clone().json()).request === "probe";
    if (isProbe && this.ctx.id.name?.startsWith("broken-")) return new Response("out of order", { status: 503 });
    return super.fetch(request);
  }

  async alarm() {
    if (!this.#dropsAlarms) await super.alarm();
  }
}
