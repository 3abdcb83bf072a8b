// @ts-check
// The floor of lateness: the least that a hand-written Durable Object can do to end work at a deadline. It inserts a row, makes a
// call that hangs and sets an alarm; the alarm aborts the call and updates the row. Only one thing can be due.
import { DurableObject } from "cloudflare:workers";

export class AlarmFloorObject extends DurableObject {
  #call = new AbortController();
  #ended = Promise.withResolvers();
  #startedAt = 0;

  /** @param {Request} request */
  async fetch(request) {
    const { searchParams } = new URL(request.url);
    const target = searchParams.get("target");
    if (!target) return Response.json(await this.#ended.promise);
    const { sql } = this.ctx.storage;
    this.#startedAt = Date.now();
    sql.exec("CREATE TABLE work (id INTEGER PRIMARY KEY, status TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER)");
    sql.exec("INSERT INTO work (id, status, started_at) VALUES (1, 'executing', ?)", this.#startedAt);
    // Not awaited, and it can only end by being aborted.
    this.env.RELAY.fetch(target, { signal: this.#call.signal }).catch(() => {});
    this.ctx.storage.setAlarm(this.#startedAt + Number(searchParams.get("timeout_ms")));
    return Response.json({ id: this.ctx.id.toString() });
  }

  alarm() {
    this.#call.abort();
    const endedAt = Date.now();
    this.ctx.storage.sql.exec("UPDATE work SET status = 'timed_out', ended_at = ? WHERE id = 1", endedAt);
    this.#ended.resolve({ startedAt: this.#startedAt, endedAt });
  }
}

export default {
  /** @param {Request} request @param {any} env */
  fetch(request, env) {
    const id = new URL(request.url).searchParams.get("id");
    // Without an id a new object: one per run, as in Curfew.
    return env.FLOOR.get(id ? env.FLOOR.idFromString(id) : env.FLOOR.newUniqueId()).fetch(request);
  },
};
