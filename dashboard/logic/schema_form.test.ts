import assert from "node:assert/strict";
import { test } from "node:test";
import { formOf, keysAt, shows, textsOf, valueOf, withItem, withoutItem, type Field, type Texts } from "./schema_form.ts";

const schema = {
  type: "object",
  required: ["name", "amount"],
  properties: {
    price: { type: ["number", "null"] },
    name: { type: "string", title: "Name" },
    amount: { type: "integer", default: 3 },
    urgent: { type: "boolean" },
    size: { enum: ["s", "m", 7] },
    more: { type: "array" },
  },
};
const kinds = (schema: unknown): string[] => formOf(schema)!.fields.map(({ name, kind }) => `${name} ${kind}`);
const filled = (schema: unknown, texts: Texts = {}) => {
  const form = formOf(schema)!;
  const { value, problems } = valueOf(form, { ...textsOf(form), ...texts });
  return { value, problems: problems.map(({ message }) => message) };
};

test("each property is a field of its kind, what is required comes first", () => {
  const form = formOf(schema)!;
  assert.deepEqual(kinds(schema), ["name text", "amount integer", "price number", "urgent boolean", "size choice", "more json"]);
  assert.deepEqual(form.fields.map(({ required }) => required), [true, true, false, false, false, false]);
  assert.deepEqual(textsOf(form), { "/amount": "3" });
});

test("what nothing is known of has no form", () => {
  for (const other of [undefined, null, true, {}, [], { type: "array" }, { type: "object" }, { type: ["string", "number"] }, { not: {} }]) assert.equal(formOf(other), undefined);
});

test("the value has the types of the schema", () => {
  const { value, problems } = filled(schema, { "/name": "Ada", "/price": "1.5", "/urgent": "true", "/size": "7", "/more": "[1]" });
  assert.deepEqual(problems, []);
  assert.deepEqual(value, { name: "Ada", amount: 3, price: 1.5, urgent: true, size: 7, more: [1] });
});

test("what cannot be read is said by its field", () => {
  const { problems } = filled(schema, { "/name": "", "/amount": "1.5", "/price": "x", "/more": "[" });
  assert.deepEqual(problems.slice(0, 3), ["Name is required", "amount is a whole number", "price is a number"]);
  assert.match(problems[3]!, /^more is no JSON/);
});

test("numbers and texts have bounds", () => {
  const bounded = { type: "object", properties: { count: { type: "integer", minimum: 1, maximum: 5 }, code: { type: "string", minLength: 2, maxLength: 3 } } };
  const problems = (count: string, code: string) => filled(bounded, { "/count": count, "/code": code }).problems;
  assert.deepEqual(problems("5", "\u{1f600}\u{1f600}"), []);
  assert.deepEqual(problems("0", "x"), ["count is at least 1", "code has at least 2 characters"]);
  assert.deepEqual(problems("6", "abcd"), ["count is at most 5", "code has at most 3 characters"]);
});

test("a property with the name of a special one is a property", () => {
  const odd = JSON.parse('{"properties": {"__proto__": {"type": "string"}, "a/b~c": {"type": "string"}}}');
  assert.equal(JSON.stringify(filled(odd, { "/__proto__": "x", "/a~1b~0c": "y" }).value), '{"__proto__":"x","a/b~c":"y"}');
});

const order = {
  type: "object",
  required: ["to"],
  properties: {
    to: { type: "object", title: "Address", required: ["city"], properties: { city: { type: "string", title: "City" }, zip: { type: "string" } } },
    from: { type: "object", required: ["city"], properties: { city: { type: "string" }, country: { type: "string", default: "CH" } } },
    lines: { type: "array", title: "Lines", minItems: 1, items: { type: "object", required: ["sku"], properties: { sku: { type: "string" }, count: { type: "integer", default: 1 } } } },
    days: { type: "array", items: { enum: ["mon", "tue"] } },
  },
};

test("objects are in objects, and one that is not required is left out until something is typed", () => {
  assert.deepEqual(filled(order), { value: { to: {} }, problems: ["Address: City is required"] });
  assert.deepEqual(filled(order, { "/to/city": "Bern" }), { value: { to: { city: "Bern" } }, problems: [] });
  assert.deepEqual(filled(order, { "/to/city": "Bern", "/from/city": "Basel" }).value, { to: { city: "Bern" }, from: { city: "Basel", country: "CH" } });
  assert.deepEqual(filled(order, { "/to/city": "Bern", "/from/country": "FR" }).problems, ["from: city is required"]);
});

test("items of a list are added and removed, and keep what was typed", () => {
  const form = formOf(order)!;
  const lines = form.fields.find(({ name }) => name === "lines")!;
  let texts: Texts = { ...textsOf(form), "/to/city": "Bern", "/days": '["tue"]' };
  for (let count = 0; count < 3; count += 1) texts = withItem("/lines", texts, lines.item!);
  texts = { ...texts, "/lines/0/sku": "a", "/lines/1/sku": "b", "/lines/2/sku": "c" };
  texts = withoutItem("/lines", texts, "1");
  assert.deepEqual(keysAt("/lines", texts), ["0", "2"]);
  texts = withItem("/lines", texts, lines.item!);
  assert.deepEqual(valueOf(form, texts).problems.map(({ message }) => message), ["Lines 3: sku is required"]);
  texts = withoutItem("/lines", texts, "3");
  assert.deepEqual(valueOf(form, texts), { value: { to: { city: "Bern" }, lines: [{ sku: "a", count: 1 }, { sku: "c", count: 1 }], days: ["tue"] }, problems: [] });
});

test("a list that is required begins with as many items as it has to have", () => {
  const list = { type: "array", minItems: 2, items: { type: "string", title: "Reason" } };
  assert.deepEqual(filled(list).problems, ["1: Reason is required", "2: Reason is required"]);
  assert.deepEqual(filled(list, { "/0": "x", "/1": "y" }).value, ["x", "y"]);
});

test("alternatives are chosen, by their titles or by what they have", () => {
  const contact = { oneOf: [{ type: "object", required: ["phone"], properties: { phone: { type: "string" } } }, { title: "By mail", type: "object", required: ["mail"], properties: { mail: { type: "string" } } }] };
  assert.deepEqual(formOf(contact)!.options.map(({ title }) => title), ["phone", "By mail"]);
  assert.deepEqual(filled(contact).problems, ["The value is required"]);
  assert.deepEqual(filled(contact, { "": "0" }).problems, ["phone is required"]);
  assert.deepEqual(filled(contact, { "": "1", "?1/mail": "a@b.example" }).value, { mail: "a@b.example" });
  const titled = formOf({ properties: { size: { oneOf: [{ const: 1, title: "small" }, { const: 2, title: "large" }] } } })!.fields[0]!;
  assert.deepEqual([titled.kind, titled.options], ["choice", [{ value: 1, title: "small" }, { value: 2, title: "large" }]]);
});

test("where nothing is a value, too, nothing has to be filled in", () => {
  const nullable = { type: ["object", "null"], required: ["amount"], properties: { amount: { type: "number" } } };
  assert.deepEqual(filled(nullable), { value: undefined, problems: [] });
  assert.deepEqual(filled(nullable, { "/amount": "3" }).value, { amount: 3 });
  assert.deepEqual(filled({ properties: { note: { anyOf: [{ type: "string" }, { type: "null" }] } }, required: ["note"] }).value, { note: null });
});

test("references inside of the schema are followed, those that lead to themselves end in JSON", () => {
  const tree = { $defs: { node: { type: "object", properties: { name: { type: "string" }, next: { $ref: "#/$defs/node" }, all: { type: "array", items: { $ref: "#/$defs/node" } } } } }, $ref: "#/$defs/node" };
  assert.deepEqual(kinds(tree), ["name text", "next json", "all json"]);
  assert.equal(formOf({ $ref: "#/$defs/itself", $defs: { itself: { $ref: "#/$defs/itself" } } }), undefined);
  assert.equal(formOf({ $ref: "#/$defs/nothing" }), undefined);
});

test("a schema that describes more than can be filled in has a form all the same", () => {
  const names = Array.from("abcdefgh");
  const all = Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/${name}` }]));
  const entangled = { type: "object", properties: all, $defs: Object.fromEntries(names.map((name) => [name, { type: "object", properties: all }])) };
  const count = (field: Field): number => field.fields.reduce((sum, child) => sum + count(child), 1);
  assert.ok(count(formOf(entangled)!) < 5_000);
  let deep: object = { type: "string" };
  for (let step = 0; step < 20; step += 1) deep = { type: "object", properties: { in: deep } };
  let field = formOf(deep);
  for (; field?.kind === "object"; ) field = field.fields[0];
  assert.equal(field?.kind, "json");
});

test("dates are days, moments are those of the reader's time zone", () => {
  const times = { properties: { due: { type: "string", format: "date" }, at: { type: "string", format: "date-time" } } };
  const form = formOf(times)!;
  const value = { due: "2026-03-01", at: "2026-03-01T10:20:30.000Z" };
  assert.deepEqual(valueOf(form, textsOf(form, { value })).value, value);
  assert.match(textsOf(form, { value: { at: "2026-03-01T10:20:00Z" } })["/at"]!, /^2026-0[23]-\d\dT\d\d:\d\d$/);
});

test("a form shows what was written as JSON, or says that it cannot", () => {
  const form = formOf(order)!;
  const value = { to: { city: "Bern" }, lines: [{ sku: "a", count: 2 }], days: ["mon"] };
  assert.ok(shows(form, value));
  assert.deepEqual(valueOf(form, textsOf(form, { value })).value, value);
  assert.equal(shows(form, { ...value, other: 1 }), false);
  assert.equal(shows(form, { to: "Bern" }), false);
});
