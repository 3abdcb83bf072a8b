// Text on a terminal: escapes, widths, tables, durations, colours.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { colours, isColoured, statusPaint } from "./colours.ts";
import { formatDuration, formatLeft, formatMoment, formatShort, parseDuration, parseMoment } from "./durations.ts";
import { DATA, isoTimes, MOMENTS } from "./iso_times.ts";
import { table } from "./table.ts";
import { cut, escaped, escapedLines, padded, widthOf, wrapped } from "./terminal_text.ts";

test("control characters are escaped, also those of one byte and those that reorder text", () => {
  assert.equal(escaped("a\x1b[31mred\x07\x9b2J\u202egpj.exe\tb\r\n"), "a\\u001b[31mred\\u0007\\u009b2J\\u202egpj.exe\\tb\\r\\n");
  assert.deepEqual(escapedLines("one\r\ntwo\x1b\nthree"), ["one", "two\\u001b", "three"]);
  assert.equal(escaped("Grüße, 世界 🙂"), "Grüße, 世界 🙂");
});

test("widths count columns, not characters", () => {
  assert.equal(widthOf("世界"), 4);
  assert.equal(widthOf("e\u0301"), 1);
  assert.equal(widthOf("\x1b[31mred\x1b[0m"), 3);
  assert.equal(cut("世界世界", 5), "世界…");
  assert.equal(cut("hello", 5), "hello");
  assert.equal(cut("hello", 1), "…");
  assert.equal(cut("hello", 0), "");
  assert.equal(padded("世", 4), "世  ");
});

test("long texts are wrapped, long words broken, and nothing is lost", () => {
  const text = "one two three-and-a-very-long-word four";
  const lines = wrapped(text, 10);
  assert.ok(lines.every((line) => widthOf(line) <= 10), lines.join("|"));
  assert.equal(lines.join("").replaceAll(" ", ""), text.replaceAll(" ", ""));
});

const plain = (text: string) => text;

test("a table fits the width; flexible columns are cut first", () => {
  const rows = [["run-1", "completed", "an error that goes on and on and on"], ["run-two", "failed", ""]];
  const columns = [{ title: "RUN" }, { title: "STATUS" }, { title: "ERROR", isFlexible: true }];
  assert.deepEqual(table(columns, rows, 40, plain), [
    "RUN      STATUS     ERROR",
    "run-1    completed  an error that goes …",
    "run-two  failed",
  ]);
  for (let width = 1; width <= 80; width++) {
    for (const line of table(columns, rows, width, plain)) assert.ok(widthOf(line) <= width, `${width}: ${line}`);
  }
});

test("a table of very many rows", () => {
  assert.equal(table([{ title: "N" }], Array.from({ length: 200_000 }, (_, index) => [String(index)]), 80, plain).length, 200_001);
});

test("durations are printed as the API prints them and read as Go reads them", () => {
  for (const [millis, text] of [[0, "0s"], [250, "250ms"], [1_500, "1.5s"], [30_000, "30s"], [300_000, "5m0s"], [3_600_000, "1h0m0s"], [5_430_010, "1h30m30.01s"]] as const) {
    assert.equal(formatDuration(millis), text);
    assert.equal(parseDuration(text), millis);
  }
  assert.equal(parseDuration("1.5h"), 5_400_000);
  assert.equal(parseDuration("2d12h"), 216_000_000);
  for (const text of ["", "30", "s", "1w", "-1s", "1 s", "1..5s", "1e3s", "99999999999999h"]) assert.equal(typeof parseDuration(text), "string", text);
  assert.equal(formatShort(12_345), "12s");
  assert.equal(formatShort(1_234), "1.2s");
  assert.equal(formatLeft(12_345), "13s");
  assert.equal(formatLeft(-5), "0s");
});

test("moments", () => {
  assert.equal(parseMoment("2026-11-16T09:30:00Z", 0), Date.UTC(2026, 10, 16, 9, 30));
  assert.equal(parseMoment("1700000000000", 0), 1_700_000_000_000);
  assert.equal(parseMoment("90s", 100_000), 10_000);
  assert.equal(typeof parseMoment("soon", 0), "string");
  const noon = new Date(2026, 10, 16, 12, 0, 0).getTime();
  assert.equal(formatMoment(noon, noon + 1_000), "12:00:00");
  assert.equal(formatMoment(noon, noon + 86_400_000), "2026-11-16 12:00:00");
});

test("NO_COLOR, FORCE_COLOR and terminals decide about colours", () => {
  assert.equal(isColoured({}, true), true);
  assert.equal(isColoured({}, false), false);
  assert.equal(isColoured({ NO_COLOR: "1" }, true), false);
  assert.equal(isColoured({ NO_COLOR: "" }, true), true);
  assert.equal(isColoured({ FORCE_COLOR: "1" }, false), true);
  assert.equal(isColoured({ FORCE_COLOR: "0" }, true), false);
  assert.equal(isColoured({ NO_COLOR: "1", FORCE_COLOR: "1" }, true), false);
  assert.equal(statusPaint("failed", colours(true))("failed"), "\x1b[31mfailed\x1b[0m");
  assert.equal(statusPaint("a later status", colours(false))("x"), "x");
});

test("moments of the API become ISO times, data of workflows stays", () => {
  assert.deepEqual(isoTimes({ items: [{ started_at: 0, ended_at: null, input: { started_at: 5 }, duration_ms: 7, deadlines: [{ due_at: 1_000 }] }] }), {
    items: [{ started_at: "1970-01-01T00:00:00.000Z", ended_at: null, input: { started_at: 5 }, duration_ms: 7, deadlines: [{ due_at: "1970-01-01T00:00:01.000Z" }] }],
  });
});

test("the fields with moments, and those with data, are those of the OpenAPI document", () => {
  const { components } = JSON.parse(readFileSync(new URL("../src/api/openapi.json", import.meta.url), "utf8"));
  const [moments, data] = [new Set<string>(), new Set<string>()];
  const visit = (schema: any): void => {
    if (typeof schema !== "object" || schema === null) return;
    for (const [name, field] of Object.entries<any>(schema.properties ?? {})) {
      const text = JSON.stringify(field);
      if (/Unix milliseconds\."/.test(text) && !field.properties && field.type !== "array") moments.add(name);
      const isFree = Object.keys(field).every((key) => key === "description") || JSON.stringify(Object.keys(field).sort()) === '["description","type"]' && field.type === "object";
      if (isFree) data.add(name);
    }
    Object.values(schema).forEach(visit);
  };
  // Printed as they are.
  const raw = ["RunExport", "WhatIf"];
  for (const [name, schema] of Object.entries(components.schemas)) if ((!name.endsWith("Body") || name === "ErrorBody") && !raw.includes(name)) visit(schema);
  assert.deepEqual([...moments].sort(), [...MOMENTS].sort());
  for (const name of data) assert.ok(DATA.has(name) || name === "progress", `${name} holds data`);
});
