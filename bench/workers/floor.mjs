// @ts-check
// The floor: the least that a hand-written Durable Object can do for a durable chain, or for parallel branches. Per node it inserts
// a row, calls a Worker that runs the step, and updates the row. No graph, no deadline, no retry, no API to inspect it.
import { DurableObject } from "cloudflare:workers";

export class FloorObject extends DurableObject {
  /** @param {Request} request */
  async fetch(request) {
    const { searchParams } = new URL(request.url);
    const nodes = Number(searchParams.get("nodes"));
    const branches = Number(searchParams.get("branches"));
    const step = searchParams.get("hops") === "2" ? this.env.HOP : this.env.STEP;
    const { sql } = this.ctx.storage;
    let rowsWritten = 0;
    let rowsRead = 0;
    /** @param {string} statement @param {unknown[]} values */
    const write = (statement, ...values) => {
      const cursor = sql.exec(statement, ...values);
      cursor.toArray();
      rowsWritten += cursor.rowsWritten;
      rowsRead += cursor.rowsRead;
    };
    /** @param {number} node */
    const insert = (node) => write("INSERT INTO steps (id, status) VALUES (?, 'dispatched')", node);
    /** @param {number} node */
    const work = async (node) => {
      const body = JSON.stringify({ input: { node } });
      const response = await step.fetch("http://step/", { method: "POST", body });
      const output = await response.text();
      write("UPDATE steps SET status = 'completed', output = ? WHERE id = ?", output, node);
      return output;
    };

    const startedAt = Date.now();
    write("CREATE TABLE steps (id INTEGER PRIMARY KEY, status TEXT NOT NULL, output TEXT)");
    for (let node = 0; node < nodes; node += 1) {
      insert(node);
      await work(node);
    }
    const all = Array.from({ length: branches }, (_, branch) => branch);
    all.forEach(insert);
    const outputs = await Promise.all(all.map(work));
    return Response.json({ rowsWritten, rowsRead, insideMs: Date.now() - startedAt, outputs: outputs.length });
  }
}

export default {
  /** @param {Request} request @param {any} env */
  fetch(request, env) {
    // A new object per run, as in Curfew.
    return env.FLOOR.get(env.FLOOR.newUniqueId()).fetch(request);
  },
};
