// Operations: what every one of them shares is written here once.
import { ALWAYS, BODY, CHANGE, CODES, CREDENTIAL, DATABASE, OBJECT } from "./codes.mjs";

/** @typedef {import("./shapes.mjs").Schema} Schema */
/** @typedef {import("./shapes.mjs").Parameter} Parameter */

/**
 * @typedef {object} Operation
 * @property {string} id
 * @property {string} tag
 * @property {string} summary one sentence
 * @property {string} [description]
 * @property {"read" | "start" | "decide" | "operate" | "admin" | null} role null: no credential is needed
 * @property {Parameter[]} [parameters]
 * @property {Schema} [body] the schema of the body
 * @property {boolean} [bodyRequired]
 * @property {Schema} [example] of the body
 * @property {Record<string, Answer>} answers by status
 * @property {("database" | "object")[]} [uses]
 * @property {string[]} [errors] those that only some operations have
 */

/** @typedef {{ description: string, schema?: Schema, type?: string, types?: Record<string, Schema>, headers?: string[] }} Answer */

/** Every answer has these. */
const HEADERS = ["Cache-Control", "X-Content-Type-Options"];
/** Of answers of a run's object and of the index. */
const BILL = "X-Curfew-Bill";

/** @param {string[]} names */
const headers = (names) => Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** @type {Record<string, string[]>} */
const HEADERS_OF_ERRORS = { 401: ["WWW-Authenticate"], 405: ["Allow"], 429: ["Retry-After"] };

/** @param {Answer} answer @param {boolean} billed */
function success({ description, schema, type = "application/json", types = schema ? { [type]: schema } : {}, headers: more = [] }, billed) {
  const content = Object.fromEntries(Object.entries(types).map(([name, schema]) => [name, { schema }]));
  return {
    description,
    headers: headers([...HEADERS, ...(billed ? [BILL] : []), ...more]),
    ...(Object.keys(content).length > 0 ? { content } : {}),
  };
}

/**
 * The answer with one of these codes.
 * @param {string} status
 * @param {string[]} codes
 * @param {boolean} billed
 */
function refusal(status, codes, billed) {
  const sentences = codes.map((code) => {
    const sentence = CODES[`${status} ${code}`];
    if (!sentence) throw new Error(`codes.mjs has no ${status} ${code}`);
    return `\`${code}\`: ${sentence}`;
  });
  const names = [...HEADERS, ...(billed ? [BILL] : []), ...(HEADERS_OF_ERRORS[status] ?? [])];
  // A callback that could not be checked says when to repeat it.
  if (codes.includes("callback_key_unreadable")) names.push("Retry-After");
  const one = { properties: { error: { properties: { code: { enum: codes } } } } };
  return {
    description: sentences.join(" "),
    headers: headers(names),
    content: { "application/json": { schema: { allOf: [{ $ref: "#/components/schemas/Error" }, one] } } },
  };
}

/** Refusals that several operations share, named after what they hold: each is written once, in `components`. */
export class Refusals {
  /** @type {Map<string, Schema>} */
  #found = new Map();

  /** @param {string} status @param {string[]} codes @param {boolean} billed */
  refer(status, codes, billed) {
    const name = [status, ...codes, ...(billed ? ["billed"] : [])].join(".");
    if (!this.#found.has(name)) this.#found.set(name, refusal(status, codes, billed));
    return { $ref: `#/components/responses/${name}` };
  }

  components() {
    return Object.fromEntries([...this.#found].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** @param {string} method @param {Operation} operation @param {Refusals} refusals */
export function operation(method, operation, refusals) {
  const { role, uses = [], body } = operation;
  const billed = uses.length > 0;
  const codes = new Set([
    ...ALWAYS,
    ...(role === null ? [] : CREDENTIAL),
    ...(role !== null && method !== "get" ? CHANGE : []),
    ...(body ? BODY : []),
    ...(uses.includes("database") ? DATABASE : []),
    ...(uses.includes("object") ? OBJECT : []),
    ...(operation.errors ?? []),
  ]);
  /** @type {Map<string, string[]>} */
  const byStatus = new Map();
  for (const code of Object.keys(CODES).filter((code) => codes.has(code))) {
    const [status = "", name = ""] = code.split(" ");
    byStatus.set(status, [...(byStatus.get(status) ?? []), name]);
  }
  const successes = Object.entries(operation.answers).map(([status, answer]) => [status, success(answer, billed)]);
  const failures = [...byStatus].map(([status, codes]) => [status, refusals.refer(status, codes, billed)]);
  const example = operation.example === undefined ? {} : { example: operation.example };
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description ? { description: operation.description } : {}),
    ...(role === null ? { security: [] } : { "x-curfew-role": role }),
    ...(operation.parameters ? { parameters: operation.parameters } : {}),
    ...(body ? { requestBody: { required: operation.bodyRequired ?? false, content: { "application/json": { schema: body, ...example } } } } : {}),
    responses: Object.fromEntries([...successes, ...failures]),
  };
}
