// @ts-check
// The coordinator with routes of its own: /loads lists how often each run's object was created in memory and how many requests it got,
// and /database/off lets every statement to D1 fail until /database/on.
import Entry, { RunObject as Run } from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

/** By the name of the run. @type {Map<string, { loads: number, requests: number }>} */
const counts = new Map();

/** @param {string | undefined} name */
function countOf(name = "") {
  const count = counts.get(name) ?? { loads: 0, requests: 0 };
  counts.set(name, count);
  return count;
}

let isDatabaseOff = false;

const refuse = async () => {
  throw new Error("D1_ERROR: Network connection lost.");
};

/** workers-rs checks the names of both classes. */
class D1PreparedStatement {
  first = refuse;
  all = refuse;
  run = refuse;
  bind() {
    return this;
  }
}
class D1Database {
  batch = refuse;
  prepare() {
    return new D1PreparedStatement();
  }
}

export class RunObject extends Run {
  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env);
    countOf(ctx.id.name).loads += 1;
  }

  /** @param {Request} request */
  fetch(request) {
    countOf(this.ctx.id.name).requests += 1;
    return super.fetch(request);
  }
}

export default class extends Entry {
  /** @param {ExecutionContext} context @param {any} env */
  constructor(context, env) {
    super(context, isDatabaseOff ? { ...env, DB: new D1Database() } : env);
  }

  /** @param {Request} request */
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/loads") return Promise.resolve(Response.json(Object.fromEntries(counts)));
    if (!pathname.startsWith("/database/")) return super.fetch(request);
    isDatabaseOff = pathname === "/database/off";
    return Promise.resolve(new Response());
  }
}
