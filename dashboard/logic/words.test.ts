import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, count, duration, parseDuration, timeLeft, words } from "./words.ts";

test("a duration has at most two units", () => {
  const cases: [number, string][] = [
    [0, "0 ms"],
    [840, "840 ms"],
    [999.6, "1000 ms"],
    [1_000, "1.0 s"],
    [9_999, "9.9 s"],
    [59_999, "59 s"],
    [60_000, "1m 00s"],
    [252_000, "4m 12s"],
    [3_900_000, "1h 05m"],
    [273_600_000, "3d 4h"],
    [-1_500, "-1.5 s"],
    [Number.NaN, "unknown"],
  ];
  for (const [ms, text] of cases) assert.equal(duration(ms), text, String(ms));
});

test("what is left, and what is over", () => {
  assert.equal(timeLeft(5_000, 1_000), "4.0 s left");
  assert.equal(timeLeft(1_000, 5_000), "4.0 s over");
  assert.equal(ago(1_000, 1_500), "now");
  assert.equal(ago(1_000, 61_000), "1m 00s ago");
  assert.equal(ago(61_000, 1_000), "in 1m 00s");
});

test("durations that people type", () => {
  const cases: [string, number | undefined][] = [
    ["90s", 90_000],
    ["1h30m", 5_400_000],
    ["1.5 h", 5_400_000],
    ["2d", 172_800_000],
    ["250ms", 250],
    ["30", undefined],
    ["", undefined],
    ["5 apples", undefined],
    ["-5m", undefined],
  ];
  for (const [text, ms] of cases) assert.equal(parseDuration(text), ms, text);
});

test("names, counts and sizes", () => {
  assert.equal(words("a_kind_of_later"), "a kind of later");
  assert.equal(count(1, "token"), "1 token");
  assert.equal(count(1_000, "token"), "1,000 tokens");
  assert.equal(bytes(1_048_576), "1.0 MiB");
});
