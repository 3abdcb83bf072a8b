// The words of the contract: short functions that make JSON Schemas, parameters and answers. openapi/README.md says how the parts fit.

/** @typedef {Record<string, any>} Schema */

/** `.` and `..` cannot stand in a URL, so nothing that a request names is named so. */
const NOT_DOTS = "(?!\\.{1,2}$)";
/** Run ids that a client may choose, and names of signals and events. */
export const NAME = `^${NOT_DOTS}[A-Za-z0-9._-]{1,128}$`;
/** Any id that a run may have. */
export const ANY_RUN_ID = `^${NOT_DOTS}[A-Za-z0-9._~-]{1,512}$`;
/** Keys of breakers. */
export const BREAKER_KEY = `^${NOT_DOTS}[A-Za-z0-9._:-]{1,128}$`;

/** @param {string} description @param {Schema} [more] @returns {Schema} */
export const text = (description, more = {}) => ({ type: "string", description, ...more });
/** @param {string} description @param {Schema} [more] @returns {Schema} */
export const whole = (description, more = {}) => ({ type: "integer", description, minimum: 0, ...more });
/** @param {string} description @param {Schema} [more] @returns {Schema} */
export const flag = (description, more = {}) => ({ type: "boolean", description, ...more });
/** @param {string} description @param {readonly string[]} names @returns {Schema} */
export const oneOf = (description, names) => ({ type: "string", description, enum: [...names] });
/** @param {string} description @param {Schema} items @param {Schema} [more] @returns {Schema} */
export const list = (description, items, more = {}) => ({ type: "array", description, items, ...more });
/** Any JSON. @param {string} description @returns {Schema} */
export const any = (description) => ({ description });

/** Unix milliseconds. @param {string} description */
export const moment = (description) => whole(`${description} Unix milliseconds.`);
/** @param {string} description */
export const millis = (description) => whole(`${description} Milliseconds.`);
/** @param {string} description @returns {Schema} */
export const length = (description) => ({ description: `${description} Milliseconds, or text like 30s, 2m, 1h30m.`, type: ["integer", "number", "string"] });

/** @param {string} name @param {string} [description] @returns {Schema} */
export const ref = (name, description) => ({ $ref: `#/components/schemas/${name}`, ...(description ? { description } : {}) });

/** The same, or null. @param {Schema} schema @returns {Schema} */
export function orNull(schema) {
  const { description, ...rest } = schema;
  // Other keywords would apply to null, too.
  const isPlain = ["enum", "const", "allOf", "anyOf", "oneOf", "not"].every((keyword) => !(keyword in rest));
  if (typeof rest.type === "string" && isPlain) return { description, ...rest, type: [rest.type, "null"] };
  return { description, anyOf: [rest, { type: "null" }] };
}

/**
 * An object without other fields. The name of an optional field ends with `?`.
 * @param {string} description
 * @param {Record<string, Schema>} fields
 * @returns {Schema}
 */
export function object(description, fields) {
  const names = Object.keys(fields);
  const required = names.filter((name) => !name.endsWith("?"));
  return {
    type: "object",
    description,
    ...(required.length > 0 ? { required } : {}),
    properties: Object.fromEntries(names.map((name) => [name.replace(/\?$/, ""), /** @type {Schema} */ (fields[name])])),
    additionalProperties: false,
  };
}

/**
 * The body of a request: as `object`, and an optional field may be null, which counts as absent.
 * @param {string} description
 * @param {Record<string, Schema>} fields
 */
export const body = (description, fields) =>
  object(description, Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, name.endsWith("?") ? orNull(schema) : schema])));

/** A page of a list. @param {string} description @param {Schema} items */
export const page = (description, items) =>
  object(description, {
    items: list("The items of this page.", items),
    next_cursor: orNull(text("Pass it as `cursor` to get the next page. Null on the last page.")),
  });

/** @typedef {{ name: string, in: string, description: string, schema: Schema, [more: string]: any }} Parameter */

/** @param {string} name @param {string} description @param {Schema} schema @param {Schema} [more] @returns {Parameter} */
export const query = (name, description, schema, more = {}) => ({ name, in: "query", description, schema, ...more });
/** @param {string} name @param {string} description @param {Schema} schema @returns {Parameter} */
export const inPath = (name, description, schema) => ({ name, in: "path", required: true, description, schema });
/** @param {string} name @param {string} description @param {Schema} schema @returns {Parameter} */
export const header = (name, description, schema) => ({ name, in: "header", description, schema });
