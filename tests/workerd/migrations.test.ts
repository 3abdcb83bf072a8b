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
