// @ts-check
// The coordinator on a bad day: an object that is told to leaves memory (/evict), and the answer to the first claim of each run whose
// name begins with unheard- is lost on its way.
import Entry, { RunObject as Run } from "../../../src/worker/entry.mjs";

export default Entry;

/** By the name of the run; an object may leave memory. @type {Set<string>} */
const claimed = new Set();

export class RunObject extends Run {
  /** @param {Request} request */
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/evict") this.ctx.abort("evicted");
    const isClaim = "claim" in Object(await request.clone().json());
    const answer = await super.fetch(request);
    const name = this.ctx.id.name ?? "";
    if (!isClaim || !name.startsWith("unheard-") || claimed.has(name)) return answer;
    claimed.add(name);
    return new Response("lost", { status: 503 });
  }
}
