// @ts-check
// The coordinator with two injected faults: /evict evicts an object from memory, and the response to the first claim of each run
// whose name begins with unheard- is lost.
import Entry, { RunObject as Run } from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

export default Entry;

/** By the name of the run, because objects are evicted. @type {Set<string>} */
const claimed = new Set();

export class RunObject extends Run {
  /** @param {Request} request */
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/evict") this.ctx.abort("evicted");
    // A client that watches the run.
    if (request.method === "GET") return super.fetch(request);
    const isClaim = "claim" in Object((await request.clone().json()).request);
    const response = await super.fetch(request);
    const name = this.ctx.id.name ?? "";
    if (!isClaim || !name.startsWith("unheard-") || claimed.has(name)) return response;
    claimed.add(name);
    return new Response("lost", { status: 503 });
  }
}
