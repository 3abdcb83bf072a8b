// @ts-check
// The coordinator with a route that writes rows of an older build to an object, and one that lists the object's tables.
import Entry, { RunObject as Current } from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

/** The tables of the first build: rows sorted by key, tokens in their own table. */
const TABLES = [
  "CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
  "CREATE TABLE tokens (id INTEGER PRIMARY KEY, status TEXT NOT NULL, row TEXT NOT NULL)",
];

export class RunObject extends Current {
  /** @param {Request} request */
  async fetch(request) {
    const { sql } = this.ctx.storage;
    switch (new URL(request.url).pathname) {
      case "/older": {
        const { run, tokens } = await request.json();
        for (const statement of TABLES) sql.exec(statement);
        for (const row of run) sql.exec("INSERT INTO run VALUES (?, ?)", ...row);
        for (const row of tokens) sql.exec("INSERT INTO tokens VALUES (?, ?, ?)", ...row);
        return new Response();
      }
      case "/tables":
        return Response.json(sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf\\_%' ESCAPE '\\'").toArray());
      default:
        return super.fetch(request);
    }
  }
}

export default class extends Entry {
  /** @param {Request} request */
  fetch(request) {
    const [, route, run] = new URL(request.url).pathname.split("/");
    if (route !== "older" && route !== "tables") return super.fetch(request);
    const object = this.env.RUNS.get(this.env.RUNS.idFromName(run));
    return object.fetch(`http://run/${route}`, { method: "POST", body: request.body });
  }
}
