import assert from "node:assert/strict";
import { test } from "node:test";
import { cut, pretty, short, visible } from "./safe_text.ts";

test("marks that turn the reading direction are shown", () => {
  assert.equal(visible("a\u202eb"), "a⟨U+202E⟩b");
  assert.equal(visible("\u0000\u200f"), "⟨U+0000⟩⟨U+200F⟩");
  assert.equal(visible("line\n\ttab שלום"), "line\n\ttab שלום");
});

test("a long text is cut between characters", () => {
  assert.deepEqual(cut("abc", 3), { shown: "abc", left: 0 });
  assert.deepEqual(cut("abcd", 3), { shown: "abc", left: 1 });
  assert.deepEqual(cut("ab😀c", 3), { shown: "ab", left: 3 });
});

test("any value has a text", () => {
  assert.equal(pretty({ a: 1 }), '{\n  "a": 1\n}');
  assert.equal(pretty(undefined), "undefined");
  assert.match(pretty(1n), /^not shown: /);
  assert.equal(short({ a: [1, 2] }), '{"a":[1,2]}');
  assert.equal(short("x\n  y"), "x y");
  assert.equal(short("x".repeat(200), 10), `${"x".repeat(10)}…`);
});
