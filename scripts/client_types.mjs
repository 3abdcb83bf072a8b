// `node scripts/client_types.mjs` writes the types of the TypeScript client: client/api.ts from src/api/openapi.json, and
// client/documents.ts from schema/*.json. `npm run check` fails if it was forgotten.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { StepFailed } from "./terminal.mjs";
import { root } from "./toolchain.mjs";

/** @typedef {Record<string, any>} Schema */

/** @param {string} what @param {string} from */
const head = (what, from) => `// The types of ${what}, written by scripts/client_types.mjs from ${from}. Do not edit: change openapi/ instead.\n\n`;

/** The text of each file. @returns {Promise<[path: string, text: string][]>} */
async function files() {
  // Not at the top: set-up installs it.
  const { typesOf } = await import("../tools/api-types/generate.mjs");
  return [
    ["client/api.ts", head("the API", "src/api/openapi.json") + (await typesOf(read("src/api/openapi.json")))],
    ["client/documents.ts", head("documents", "schema/") + (await typesOf(JSON.stringify(documents()), true))],
  ];
}

/** @param {string} path */
const read = (path) => readFileSync(join(root, path), "utf8");

/** The schemas as the components of an OpenAPI document. The schema of workflows has the parts of tasks and actions, too. */
function documents() {
  const { $defs, $schema, title, ...workflow } = JSON.parse(read("schema/workflow.json"));
  // A JSON Schema that comes from a library or a file would not fit closer types.
  const { description } = $defs.schema;
  const parts = { ...$defs, schema: { type: ["object", "boolean"], description } };
  return {
    openapi: "3.1.0",
    info: { title, version: "1" },
    paths: {},
    components: { schemas: Object.fromEntries(Object.entries({ workflow, ...parts }).map(([name, schema]) => [name, typed(schema)])) },
  };
}

/** The part of a schema that types can say. @param {any} schema @returns {any} */
function typed(schema) {
  if (Array.isArray(schema)) return schema.map(typed);
  if (typeof schema !== "object" || schema === null) return schema;
  const { allOf, pattern, not, $ref, ...rest } = /** @type {Schema} */ (schema);
  const parts = Object.fromEntries(Object.entries(rest).map(([name, part]) => [name, typed(part)]));
  if ($ref) parts["$ref"] = $ref.replace("#/$defs/", "#/components/schemas/");
  // A list that holds "*", or only names.
  const names = parts["type"] === "array" && parts["anyOf"]?.find((/** @type {Schema} */ one) => one["items"])?.items;
  if (names) return { type: "array", description: parts["description"], items: { enum: [...names.enum, "*"] } };
  if (!parts["properties"]?.implementation) return parts;
  // What an action does depends on its kind.
  const { kind, implementation, ...properties } = parts["properties"];
  const rules = allOf.filter((/** @type {Schema} */ one) => one["then"]?.properties?.implementation?.$ref);
  const kinds = rules.map((/** @type {Schema} */ rule) => ({ ...rule["if"].properties, ...rule["then"].properties }));
  if (kinds.length !== kind.enum.length) throw new StepFailed("schema/workflow.json: every kind of action has an implementation");
  const oneOf = kinds.map((/** @type {Schema} */ one) => ({ type: "object", required: ["kind", "implementation"], properties: typed(one) }));
  return { type: "object", description: parts["description"], required: parts["required"].filter((/** @type {string} */ name) => name in properties), properties, oneOf };
}

/** Fails if types are older than what they are made from. */
export async function checkClientTypes() {
  const old = (await files()).filter(([path, text]) => read(path) !== text);
  if (old.length > 0) throw new StepFailed(`${old.map(([path]) => path).join(", ")} is not what openapi/ says: run node scripts/client_types.mjs`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) for (const [path, text] of await files()) writeFileSync(join(root, path), text);
