import assert from "node:assert/strict";
import { test } from "node:test";
import { differences } from "./json_difference.ts";

test("items with an id are compared by it", () => {
  const before = { timeout: "1m", nodes: [{ id: "a" }, { id: "b", timeout: "5s" }] };
  const after = { timeout: "1m", nodes: [{ id: "a" }, { id: "new" }, { id: "b", timeout: "9s" }], tags: ["x"] };
  assert.deepEqual(differences(before, after), [
    { path: "/nodes/b/timeout", before: "5s", after: "9s" },
    { path: "/nodes/new", before: undefined, after: { id: "new" } },
    { path: "/tags", before: undefined, after: ["x"] },
  ]);
});

test("other lists by position, other values as they are", () => {
  assert.deepEqual(differences([1, 2], [1, 3]), [{ path: "/1", before: 2, after: 3 }]);
  assert.deepEqual(differences({ a: 1 }, { a: [1] }), [{ path: "/a", before: 1, after: [1] }]);
  assert.deepEqual(differences({ a: [{ id: "x" }] }, { a: [{ id: "x" }] }), []);
  assert.deepEqual(differences(1, "1"), [{ path: "/", before: 1, after: "1" }]);
});
