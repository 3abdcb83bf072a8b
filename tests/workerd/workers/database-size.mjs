// @ts-check
// The coordinator with a route that returns the size of the SQLite database of a run's object.
import Entry, { RunObject as Current } from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

export class RunObject extends Current {
  /** @param {Request} request */
  async fetch(request) {
    if (new URL(request.url).pathname !== "/database-size") return super.fetch(request);
    return Response.json({ bytes: this.ctx.storage.sql.databaseSize });
  }
}

export default class extends Entry {
  /** @param {Request} request */
  fetch(request) {
    const [, route, run] = new URL(request.url).pathname.split("/");
    if (route !== "database-size") return super.fetch(request);
    const object = this.env.RUNS.get(this.env.RUNS.idFromName(run));
    return object.fetch(`http://run/${route}`, { method: "POST" });
  }
}
