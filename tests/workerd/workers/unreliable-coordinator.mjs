// @ts-check
// The coordinator on a worse platform: alarms that never ring (DEAF), a queue that refuses the first word on a run's end and the first
// on a gate of each run (REFUSING), and objects that cannot be probed (those named broken-...).
import Entry, { RunObject as Run } from "../../../src/worker/entry.mjs";

export default Entry;

/** The binding is known by this name. */
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
  #isDeaf;

  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env.REFUSING ? { ...env, INDEX_QUEUE: new WorkerQueue(env.INDEX_QUEUE) } : env);
    this.#isDeaf = Boolean(env.DEAF);
  }

  /** @param {Request} request */
  async fetch(request) {
    const isProbe = (await request.clone().json()) === "probe";
    if (isProbe && this.ctx.id.name?.startsWith("broken-")) return new Response("out of order", { status: 503 });
    return super.fetch(request);
  }

  async alarm() {
    if (!this.#isDeaf) await super.alarm();
  }
}
