// What the schemas of documents share. `null` counts as not written, except for a duration, where it means "no limit".
import { orNull } from "./shapes.mjs";

export { BREAKER_KEY, NAME } from "./shapes.mjs";

/** @typedef {import("./shapes.mjs").Schema} Schema */

export const ID = "^[a-z0-9_-]{1,64}$";
const DURATION = "^(?=.*[1-9])(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ms|s|m|h))+$";
/** A text with an expression in it. */
export const EXPRESSION = "\\$\\{";
/** One expression, and nothing around it. */
export const ONLY_EXPRESSION = "^\\$\\{[\\s\\S]*\\}$";
/** An address, or a text with an expression in it. */
export const URL = `^\\s*[Hh][Tt][Tt][Pp][Ss]?:|${EXPRESSION}`;
/** What methods and the names of headers consist of. */
export const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** A text without control characters other than tabs. */
const HEADER_VALUE = "^[^\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f]*$";
/** What stands after the first name of a target. */
const NAMES_16 = "(\\.[^.]+){1,16}$";
/** A target of a mapping in the graph: src/definition/path.rs. */
export const TARGET = `^(state|output)${NAMES_16}|^_branch\\.output(${NAMES_16}|$)`;
/** A target of a mapping in a task, where `y` is `output.y`: src/definition/mapping.rs. */
export const TASK_TARGET = `^(state|output)${NAMES_16}|^(?!_branch|(state|output|input|run|secret|callback|now)(\\.|$))[^.]+(\\.[^.]+){0,15}$`;
/** Above it no operator can set `CURFEW_TIMEOUT_MAX_MS`. */
const MILLIS_MAX = 1_000_000_000_000_000;
const VERSION_MAX = Number.MAX_SAFE_INTEGER;

/** @param {string} name */
export const part = (name) => ({ $ref: `#/$defs/${name}` });
/** @param {string} description */
export const id = (description) => ({ type: "string", pattern: ID, description });
/** @param {string} description */
export const version = (description) => ({ type: "integer", minimum: 1, maximum: VERSION_MAX, description });
/** @param {string} description */
export const string = (description) => ({ type: "string", description });
/** Any JSON in which strings may hold `${...}`. @param {string} description */
export const template = (description) => ({ description });
/** @param {string} description */
export const expression = (description) => ({ type: "string", minLength: 1, description });
/** @param {string} description @param {readonly string[]} names @param {string} [byDefault] */
export const choice = (description, names, byDefault) => ({
  type: "string",
  enum: [...names],
  description,
  ...(byDefault === undefined ? {} : { default: byDefault }),
});
/** @param {string} description */
export const jsonSchema = (description) => ({ ...part("schema"), description });
/** Of a mapping in the graph. @param {string} description */
export const targets = (description) => ({ type: "object", propertyNames: { pattern: TARGET }, description });
/** Of a mapping in a task. @param {string} description */
export const taskTargets = (description) => ({ type: "object", propertyNames: { pattern: TASK_TARGET }, description });
/** @param {string} description */
export const url = (description) => ({ type: "string", pattern: URL, description });
/** In any case of its letters. @param {string} word */
const anyCase = (word) => word.replace(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`);
/** @param {string[]} names those that cannot be written */
export const headerNames = (names) => ({ pattern: `^(?!(${names.map(anyCase).join("|")})$)${TOKEN}$` });
/** The value of a header: a string has no line breaks. */
export const headerValue = { pattern: HEADER_VALUE };
/** One value or a list of them. @param {Schema} one */
export const oneOrMore = ({ description, ...one }) => ({ description, anyOf: [one, { type: "array", minItems: 1, items: one }] });
/** A value, or a text with an expression that gives one. @param {Schema} schema */
export const orExpression = ({ description, ...schema }) => ({ description, anyOf: [schema, { type: "string", pattern: EXPRESSION }] });

/**
 * Both spellings of a duration, as fields of an object.
 * @param {string} name
 * @param {string} description
 * @param {{ never?: boolean, or?: Schema[], orMillis?: Schema[], more?: string }} [options] `never`: null means "no limit"; `more`: of the text only
 * @returns {Record<string, Schema>}
 */
export function duration(name, description, { never = true, or = [], orMillis = [], more = "" } = {}) {
  const text = { type: "string", pattern: DURATION };
  const millis = { type: "integer", minimum: 1, maximum: MILLIS_MAX };
  const none = never ? [{ type: "null" }] : [];
  return {
    [`${name}?!`]: { description: `${description} Written like "500ms", "30s", "2m" or "1h30m".${more && ` ${more}`}`, anyOf: [text, ...or, ...none] },
    [`${name}_ms?!`]: { description: `${description} In milliseconds.`, anyOf: [millis, ...orMillis, ...none] },
  };
}

/** Both spellings of a duration at once are refused. @param {string[]} names */
export const oneSpelling = (...names) => names.map((name) => ({ not: { required: [name, `${name}_ms`] } }));

/** The field is written, and not null. @param {string} field */
export const has = (field) => ({ required: [field], properties: { [field]: { not: { type: "null" } } } });
/** The fields are not written, or null. @param {string[]} fields */
export const without = (fields) => ({ properties: Object.fromEntries(fields.map((field) => [field, { type: "null" }])) });
/** @param {Schema} condition @param {Schema} then */
export const when = (condition, then) => ({ if: condition, then });

/**
 * An object without other fields. The name of an optional field ends with `?`, and it may be null; one that ends with `?!` says itself
 * whether it may.
 * @param {string} description
 * @param {Record<string, Schema>} fields
 * @param {Schema[]} [rules]
 * @returns {Schema}
 */
export function object(description, fields, rules = []) {
  const required = Object.keys(fields).filter((name) => !name.includes("?"));
  const properties = Object.entries(fields).map(([name, schema]) => {
    const isOptional = name.endsWith("?") && (schema.type !== undefined || schema.anyOf !== undefined || schema.$ref !== undefined);
    return [name.replace(/\?!?$/, ""), isOptional ? orNull(schema) : schema];
  });
  return {
    type: "object",
    description,
    ...(required.length > 0 ? { required } : {}),
    properties: Object.fromEntries(properties),
    additionalProperties: false,
    ...(rules.length > 0 ? { allOf: rules } : {}),
  };
}

/** A field that any document may have. */
export const forPeople = {
  "name?": string("A name for people. It has no effect on runs."),
  "description?": string("A text for people. It has no effect on runs."),
};
/** Editors read it, Curfew does not. */
export const schemaField = { "$schema?!": { description: "The address of this schema, for editors. Curfew ignores it." } };
