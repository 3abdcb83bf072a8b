import assert from "node:assert/strict";
import { test } from "node:test";
import { sampleOf } from "./schema_sample.ts";

test("a sample has what has to be there, inside of the bounds", () => {
  const schema = {
    type: "object",
    required: ["name", "amount", "share", "agree", "color", "to", "items", "due", "contact"],
    properties: {
      name: { type: "string", minLength: 6 },
      amount: { type: "integer", minimum: 3 },
      share: { type: "number", exclusiveMinimum: 0, maximum: 0.5 },
      agree: { type: "boolean" },
      color: { enum: ["red", "green"] },
      copies: { type: "integer", default: 2 },
      notes: { type: "string" },
      to: { $ref: "#/$defs/address" },
      items: { type: "array", minItems: 2, items: { type: "string", maxLength: 3 } },
      due: { type: "string", format: "date" },
      contact: { oneOf: [{ type: "object", required: ["mail"], properties: { mail: { type: "string" } } }, { type: "null" }] },
    },
    $defs: { address: { type: "object", required: ["city"], properties: { city: { type: "string", examples: ["Bern"] } } } },
  };
  assert.deepEqual(sampleOf(schema), {
    name: "textxx",
    amount: 3,
    share: 0.5,
    agree: true,
    color: "red",
    copies: 2,
    to: { city: "Bern" },
    items: ["tex", "tex"],
    due: "2026-01-01",
    contact: { mail: "text" },
  });
});

test("a sample of a number is one that the bounds let through", () => {
  const amount = (bounds: object, type = "number") => sampleOf({ type, ...bounds });
  assert.deepEqual([amount({}), amount({ minimum: 3 }), amount({ maximum: -2 }), amount({ exclusiveMinimum: 0, exclusiveMaximum: 1 }), amount({ exclusiveMinimum: 1 }), amount({ exclusiveMaximum: 1 })], [1, 3, -2, 0.5, 2, 0]);
  assert.deepEqual([amount({ minimum: 2.5 }, "integer"), amount({ exclusiveMinimum: 4 }, "integer"), amount({ multipleOf: 5, minimum: 7 }), amount({ multipleOf: 5, exclusiveMaximum: -5 })], [3, 5, 10, -10]);
});

test("any schema has a sample, one that leads to itself, too", () => {
  for (const schema of [undefined, null, true, {}, [], { $ref: "#" }, { $ref: "elsewhere" }, { type: "mystery" }]) assert.equal(sampleOf(schema), null);
  assert.deepEqual(sampleOf({ type: ["object", "null"], properties: {} }), {});
});
