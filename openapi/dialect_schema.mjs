// The JSON Schemas that documents hold: the dialect of docs/documents.md#schemas, as src/json_schema/keywords.rs reads it.
import { part } from "./document_parts.mjs";

const self = part("schema");
const TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"];
/** The longest pattern, in bytes. */
const PATTERN_MAX = 2_048;

const one = (/** @type {string} */ description) => ({ ...self, description });
const several = (/** @type {string} */ description) => ({ type: "array", minItems: 1, items: self, description });
const named = (/** @type {string} */ description) => ({ type: "object", additionalProperties: self, description });
const number = (/** @type {string} */ description) => ({ type: "number", description });
const count = (/** @type {string} */ description) => ({ type: "integer", minimum: 0, description });
const text = (/** @type {string} */ description) => ({ type: "string", description });
const flag = (/** @type {string} */ description) => ({ type: "boolean", description });
const names = { type: "array", items: { type: "string" } };
const NOTE = "It has no effect.";

const keywords = {
  type: {
    description: "The type of the value, or a list of types.",
    anyOf: [{ enum: TYPES }, { type: "array", minItems: 1, items: { enum: TYPES } }],
  },
  enum: { type: "array", description: "The values that are allowed." },
  const: { description: "The only value that is allowed." },
  allOf: several("The value fits all of these schemas."),
  anyOf: several("The value fits at least one of these schemas."),
  oneOf: several("The value fits exactly one of these schemas."),
  not: one("The value does not fit this schema."),
  if: one("Where the value fits this schema, `then` applies, elsewhere `else`."),
  then: one("What the value must fit where it fits `if`."),
  else: one("What the value must fit where it does not fit `if`."),
  $ref: { type: "string", pattern: "^(#(/|%2[Ff]|$)|$)", description: "A pointer to another part of this schema, such as `#/$defs/name`, which applies here." },
  $defs: named("Schemas that a `$ref` of this schema can name."),
  definitions: named("The same as `$defs`, under its older name."),
  minimum: number("The smallest number that is allowed."),
  maximum: number("The largest number that is allowed."),
  exclusiveMinimum: number("The number is larger than this."),
  exclusiveMaximum: number("The number is smaller than this."),
  multipleOf: { type: "number", exclusiveMinimum: 0, description: "The number is a multiple of this." },
  minLength: count("The fewest characters of a string."),
  maxLength: count("The most characters of a string."),
  pattern: { type: "string", maxLength: PATTERN_MAX, description: "A regular expression that matches somewhere in the string, without look-around and back-references." },
  items: one("What each item of an array must fit, after those of `prefixItems`."),
  prefixItems: several("What the first items of an array must fit, one schema each."),
  contains: one("What at least one item of an array must fit."),
  minContains: count("How many items must fit `contains`, at least; 1 by default."),
  maxContains: count("How many items may fit `contains`, at most."),
  minItems: count("The fewest items of an array."),
  maxItems: count("The most items of an array."),
  uniqueItems: flag("Whether all items of an array must differ."),
  properties: named("What the members of an object must fit, by their names."),
  patternProperties: {
    ...named("What the members of an object must fit whose names match a regular expression."),
    propertyNames: { maxLength: PATTERN_MAX },
  },
  additionalProperties: one("What the other members of an object must fit; `false` refuses them."),
  propertyNames: one("What the names of the members of an object must fit."),
  required: { ...names, description: "The members that an object must have." },
  minProperties: count("The fewest members of an object."),
  maxProperties: count("The most members of an object."),
  dependentRequired: { type: "object", additionalProperties: names, description: "For the name of a member the other members that an object must have beside it." },
  dependentSchemas: named("For the name of a member what an object must fit that has it."),
  title: text(`A name for people. ${NOTE}`),
  description: text(`A text for people. ${NOTE}`),
  default: { description: `A value for people and editors. ${NOTE}` },
  examples: { type: "array", description: `Values for people and editors. ${NOTE}` },
  format: text(`The form of a string, such as "email", for people. ${NOTE}`),
  deprecated: flag(`Whether the value should no longer be used. ${NOTE}`),
  readOnly: flag(`Whether the value is only read. ${NOTE}`),
  writeOnly: flag(`Whether the value is only written. ${NOTE}`),
  $schema: text(`The dialect of the schema. ${NOTE}`),
  $id: text(`The address of the schema. ${NOTE}`),
  $comment: text(`A remark for authors. ${NOTE}`),
  contentMediaType: text(`The media type of a string. ${NOTE}`),
  contentEncoding: text(`How a string is encoded. ${NOTE}`),
};

/** The `$defs` of schemas in documents. */
export const dialectParts = {
  schema: {
    description: "A JSON Schema, draft 2020-12, without what needs another document. `true` allows every value, `false` none.",
    type: ["object", "boolean"],
    properties: keywords,
    additionalProperties: false,
  },
};
