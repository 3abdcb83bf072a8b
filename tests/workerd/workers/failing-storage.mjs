// @ts-check
// The coordinator with a database that refuses every statement that writes the text in FAILING.
import Entry, { RunObject as Run } from "../../../src/worker/entry.mjs";

export * from "../../../src/worker/entry.mjs";

export default Entry;

let isPatched = false;

/** All objects of an isolate share the prototype of their databases. @param {SqlStorage} sql @param {string} text */
function refuse(sql, text) {
  if (isPatched) return;
  isPatched = true;
  const prototype = Object.getPrototypeOf(sql);
  const { exec } = prototype;
  /** @this {SqlStorage} @param {string} statement @param {unknown[]} values */
  prototype.exec = function (statement, ...values) {
    const isWrite = /^(INSERT|UPDATE)/.test(statement);
    if (isWrite && values.some((value) => typeof value === "string" && value.includes(text))) throw new Error("string or blob too big: SQLITE_TOOBIG");
    return exec.call(this, statement, ...values);
  };
}

export class RunObject extends Run {
  /** @param {DurableObjectState} ctx @param {any} env */
  constructor(ctx, env) {
    refuse(ctx.storage.sql, env.FAILING);
    // The state after a start that was interrupted before its commit.
    if (ctx.id.name?.startsWith("halfway-")) {
      ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS run (id INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL, status TEXT NOT NULL)");
    }
    super(ctx, env);
  }
}
