// Rows that an older build wrote to D1 are found by the lists of this build.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { root } from "./harness.ts";

const files = readdirSync(join(root, "migrations")).filter((name) => name.endsWith(".sql")).sort();
const apply = (database: DatabaseSync, names: string[]): void => {
  for (const name of names) database.exec(readFileSync(join(root, "migrations", name), "utf8"));
};

test("0007 migrates tags and parents", () => {
  const database = new DatabaseSync(":memory:");
  const at = files.findIndex((name) => name.startsWith("0007_"));
  apply(database, files.slice(0, at));
  const insert = database.prepare("INSERT INTO runs (id, workflow_id, version, status, tags, started_at, revision, summary) VALUES (?, 'w', 1, 'running', ?, ?, 1, ?)");
  insert.run("a", '["x","y","x"]', 10, JSON.stringify({ parent: null }));
  insert.run("b", "[]", 11, JSON.stringify({ parent: { run_id: "a", token_id: "t1" } }));
  apply(database, files.slice(at));
  const rows = (sql: string): unknown[] => database.prepare(sql).all().map((row) => Object.values(row));
  assert.deepEqual(rows("SELECT * FROM run_tags"), [["x", 10, "a"], ["y", 10, "a"]]);
  assert.deepEqual(rows("SELECT id FROM runs INDEXED BY runs_by_parent WHERE parent_id = 'a'"), [["b"]]);
  assert.deepEqual(rows("SELECT id, tags FROM runs ORDER BY id"), [["a", '["x","y","x"]'], ["b", "[]"]]);
});

test("0011 makes the table of operations, and the statements of the sweep use its indexes", () => {
  const database = new DatabaseSync(":memory:");
  apply(database, files);
  const insert = database.prepare("INSERT INTO operations (id, kind, request, created_at, updated_at, ended_at) VALUES (?, 'cancel', '{}', 1, ?, ?)");
  insert.run("open", 5, null);
  insert.run("ended", 5, 7);
  const plan = (where: string): string => JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN SELECT id FROM operations WHERE ${where}`).all());
  assert.match(plan("ended_at IS NULL AND updated_at <= 9 ORDER BY updated_at LIMIT 1"), /operations_open/);
  assert.match(plan("ended_at <= 9 ORDER BY ended_at LIMIT 1"), /operations_ended/);
  const [row] = database.prepare("SELECT cursor, total, done, failed, skipped, errors FROM operations WHERE id = 'open'").all();
  assert.deepEqual({ ...row }, { cursor: "", total: null, done: 0, failed: 0, skipped: 0, errors: "[]" });
});

test("0009 makes a key for callbacks; only a database with documents forwards capabilities of earlier builds, for 30 days", () => {
  const at = files.findIndex((name) => name.startsWith("0009_"));
  const settings = (document: boolean): Record<string, string> => {
    const database = new DatabaseSync(":memory:");
    apply(database, files.slice(0, at));
    if (document) database.exec("INSERT INTO definitions (kind, id, version, content, created_at) VALUES ('workflows', 'w', 1, '{}', 1)");
    apply(database, files.slice(at));
    return Object.fromEntries(database.prepare("SELECT name, value FROM settings").all().map(({ name, value }) => [name, value]));
  };
  const [used, fresh] = [settings(true), settings(false)];
  for (const { callback_key } of [used, fresh]) assert.match(callback_key!, /^[0-9a-f]{64}$/);
  assert.notEqual(used["callback_key"], fresh["callback_key"]);
  assert.equal(fresh["callback_older_until"], "0");
  const days = (Number(used["callback_older_until"]) - Date.now()) / 86_400_000;
  assert.ok(days > 29.99 && days <= 30, `${days}`);
});

test("0012 adds the metrics to an index of an earlier build, and a scrape uses its indexes", () => {
  const database = new DatabaseSync(":memory:");
  const at = files.findIndex((name) => name.startsWith("0012_"));
  apply(database, files.slice(0, at));
  database.exec("INSERT INTO runs (id, workflow_id, version, status, started_at, revision, summary) VALUES ('a', 'w', 1, 'running', 10, 1, '{}')");
  database.exec("INSERT INTO breakers (key, state, failures, updated_at, revision) VALUES ('k', 'open', 3, 1, 1)");
  apply(database, files.slice(at));
  assert.deepEqual({ ...database.prepare("SELECT metrics, parked_since FROM runs").get() }, { metrics: null, parked_since: null });
  const scrape = readFileSync(join(root, "src/index/metrics/scrape.sql"), "utf8");
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${scrape}`).all(201, 10_000).map(({ detail }) => String(detail));
  for (const index of ["runs_parked", "breakers_not_closed"]) assert.ok(plan.some((step) => step.includes(index)), plan.join("; "));
  assert.ok(!plan.some((step) => step === "SCAN runs"), plan.join("; "));
  const rows = database.prepare(scrape).all(201, 10_000).map((row) => Object.values(row));
  assert.deepEqual(rows, [["breaker", "", "k", "open", 0], ["parked", "", "", "", 0]]);
});
