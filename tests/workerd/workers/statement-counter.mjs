// @ts-check
// The coordinator with a route of its own: /statements lists the statements that were prepared in D1 since the last request to it,
// by the first words of each, and the sizes of transactions.
import Entry, { RunObject } from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

export { RunObject };

/** @type {string[]} */
let prepared = [];
/** @type {number[]} */
let transactions = [];

/** workers-rs checks the name of the class. */
class D1Database {
  #real;
  /** @param {any} real */
  constructor(real) {
    this.#real = real;
  }
  /** @param {string} sql */
  prepare(sql) {
    prepared.push(sql.replace(/^--.*\n/gm, "").trim().slice(0, 40));
    return this.#real.prepare(sql);
  }
  /** @param {any[]} statements */
  batch(statements) {
    transactions.push(statements.length);
    return this.#real.batch(statements);
  }
}

export default class extends Entry {
  /** @param {ExecutionContext} context @param {any} env */
  constructor(context, env) {
    super(context, { ...env, DB: new D1Database(env.DB) });
  }

  /** @param {Request} request */
  fetch(request) {
    if (new URL(request.url).pathname !== "/statements") return super.fetch(request);
    const response = Response.json({ prepared, transactions });
    [prepared, transactions] = [[], []];
    return Promise.resolve(response);
  }
}
