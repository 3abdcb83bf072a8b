// Why a deadline passed, as `curfew run` prints it: from the views that golden files pin.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Timeout } from "../client/index.ts";
import { whyLines } from "./why_text.ts";

const view = (name: string) => JSON.parse(readFileSync(new URL(`../tests/golden/view_timeout_${name}.json`, import.meta.url), "utf8")) as Timeout;

test("the limit, the place it is written at, and what is known of the smallest one", () => {
  assert.deepEqual(whyLines(view("why_step")), [
    "the execution limit of 30s at send passed: /nodes/1/timeout",
    "more than 30s: the call had not answered when it was cut",
  ]);
});

test("a smallest limit comes with the change that sets it", () => {
  assert.deepEqual(whyLines(view("why_join")), [
    "the join limit of 5s at z passed: /transitions/1/synchronization/timeout",
    "it would have held with 7.501s: the last result that was needed came 7.5s after the first arrival, and was discarded",
    'change: [{"op":"replace","path":"/transitions/1/synchronization/timeout","value":"7501ms"}]',
  ]);
});

test("what the node usually takes, and a limit of another document", () => {
  const step = view("why_step");
  const why = step.why!;
  const usual = { ...why.usual, p50_ms: 1_200, p99_ms: 2_000, source: "latencies" as const };
  const limit = { ...why.limit, pointer: "/execution/timeout", document: { kind: "actions" as const, id: "work\x1b" } };
  const [first, second] = whyLines({ ...step, why: { ...why, usual, limit } });
  assert.equal(first, "the execution limit of 30s at send passed: actions/work\\u001b /execution/timeout");
  assert.equal(second, "usually send takes 1.2s, and 2s in 99 of 100 runs");
  const [start] = whyLines({ ...step, why: { ...why, limit: { ...why.limit, pointer: null, source: "start" } } });
  assert.equal(start, "the execution limit of 30s at send passed: `timeout_ms` of the start");
  const reason = "`timeout_ms` of the start; it takes the place of the document's";
  const [because] = whyLines({ ...step, why: { ...why, limit: { ...why.limit, pointer: null, source: "start", reason } } });
  assert.equal(because, `the execution limit of 30s at send passed: ${reason}`);
});

test("a record of an older Curfew says nothing", () => {
  assert.deepEqual(whyLines(view("full")), []);
});
