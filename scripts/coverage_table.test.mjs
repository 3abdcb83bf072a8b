import assert from "node:assert/strict";
import { test } from "node:test";
import { roomsOf, table } from "./coverage_table.mjs";

const file = (/** @type {string} */ path, /** @type {number} */ count, /** @type {number} */ covered) => ({
  path,
  lines: { count, covered },
  functions: { count: 2, covered: 1 },
});

test("files are added up by room, and files outside src are left out", () => {
  const files = [file("src/run/fan/out.rs", 10, 5), file("src/run/mod.rs", 30, 25), file("src/lib.rs", 1, 1), file("tests/native.rs", 5, 5)];
  assert.deepEqual(table(roomsOf(files)), [
    "room      files  lines  not run  covered  functions",
    "(lib.rs)      1      1        0  100.0 %     50.0 %",
    "run           2     40       10   75.0 %     50.0 %",
    "all           3     41       10   75.6 %     50.0 %",
  ]);
});
