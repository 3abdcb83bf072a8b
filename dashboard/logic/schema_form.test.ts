import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldsOf, valueOf } from "./schema_form.ts";

const schema = {
  type: "object",
  required: ["name", "amount"],
  properties: {
    name: { type: "string", title: "Name" },
    amount: { type: "integer", default: 3 },
    price: { type: ["number", "null"] },
    urgent: { type: "boolean" },
    size: { enum: ["s", "m", 7] },
    more: { type: "array" },
  },
};

test("each property is a field of its kind", () => {
  const fields = fieldsOf(schema)!;
  assert.deepEqual(fields.map(({ name, kind, required, initial }) => [name, kind, required, initial]), [
    ["name", "text", true, ""],
    ["amount", "integer", true, "3"],
    ["price", "number", false, ""],
    ["urgent", "boolean", false, ""],
    ["size", "choice", false, ""],
    ["more", "json", false, ""],
  ]);
});

test("what is no schema of an object has no fields", () => {
  for (const other of [undefined, null, true, { type: "array" }, { type: "string", properties: {} }, []]) assert.equal(fieldsOf(other), undefined);
});

test("an object that may be null has fields", () => {
  assert.deepEqual(fieldsOf({ ...schema, type: ["object", "null"] }), fieldsOf(schema));
  for (const type of [["null"], ["object", "array"], []]) assert.equal(fieldsOf({ ...schema, type }), undefined);
});

test("the value has the types of the schema", () => {
  const fields = fieldsOf(schema)!;
  const { value, problems } = valueOf(fields, { name: "Ada", price: "1.5", urgent: "true", size: "7", more: "[1]" });
  assert.deepEqual(problems, []);
  assert.deepEqual(value, { name: "Ada", amount: 3, price: 1.5, urgent: true, size: 7, more: [1] });
});

test("what cannot be read is said by its field", () => {
  const { problems } = valueOf(fieldsOf(schema)!, { name: "", amount: "1.5", price: "x", more: "[" });
  assert.deepEqual(problems.map(({ name }) => name), ["amount", "price", "more"]);
  assert.match(problems[2]!.message, /^more is no JSON/);
});

test("a property with the name of a special one is a property", () => {
  const fields = fieldsOf(JSON.parse('{"properties": {"__proto__": {"type": "string"}}}'))!;
  assert.equal(JSON.stringify(valueOf(fields, { ["__proto__"]: "x" }).value), '{"__proto__":"x"}');
});
