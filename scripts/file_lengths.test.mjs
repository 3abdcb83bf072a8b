import assert from "node:assert/strict";
import { test } from "node:test";
import { tooLong } from "./file_lengths.mjs";

test("a file above its limit is named with the limit", () => {
  const files = [
    { path: "src/run/mod.rs", lines: 601 },
    { path: "src/run/token.rs", lines: 600 },
    { path: "README.md", lines: 201 },
    { path: "ARCHITECTURE.md", lines: 250 },
    { path: "docs/api.md", lines: 5_000 },
  ];
  assert.deepEqual(tooLong(files), ["src/run/mod.rs has 601 lines, limit 600", "README.md has 201 lines, limit 200"]);
});
