import assert from "node:assert/strict";
import { test } from "node:test";
import { clockOffset } from "./clock_offset.ts";

const NOON = Date.parse("2026-03-01T12:00:00Z");
const header = new Date(NOON).toUTCString();

test("a clock that is about right is not corrected", () => {
  for (const early of [-2_000, -500, 0, 900, 2_500]) assert.equal(clockOffset(header, NOON + early, NOON + early + 40), 0, `${early}`);
  // A slow answer says little about the clock.
  assert.equal(clockOffset(header, NOON - 30_000, NOON + 1_000), 0);
});

test("a clock that is wrong is corrected to about a second", () => {
  for (const wrong of [-86_400_000, -60_000, -5_000, 5_000, 600_000]) {
    const offset = clockOffset(header, NOON + 300 + wrong, NOON + 401 + wrong)!;
    assert.ok(Math.abs(offset + wrong) < 1_000, `${wrong}: ${offset}`);
    assert.ok(Number.isInteger(offset), "the API takes whole milliseconds");
  }
});

test("without a header nothing is known", () => {
  assert.deepEqual([clockOffset(null, 0, 1), clockOffset("yesterday", 0, 1)], [undefined, undefined]);
});
