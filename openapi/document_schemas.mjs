// The JSON Schemas of documents, each with all that it refers to: an editor needs one file.
import { actionParts } from "./action_schema.mjs";
import { dialectParts } from "./dialect_schema.mjs";
import { taskParts } from "./task_schema.mjs";
import { workflowParts } from "./workflow_schema.mjs";

const parts = { ...workflowParts, ...taskParts, ...actionParts, ...dialectParts };

/** The parts that `schema` leads to. @param {object} schema @param {Map<string, object>} [found] */
function used(schema, found = new Map()) {
  for (const [, name = ""] of JSON.stringify(schema).matchAll(/"#\/\$defs\/(\w+)"/g)) {
    const part = parts[/** @type {keyof typeof parts} */ (name)];
    if (found.has(name) || part === undefined) continue;
    found.set(name, part);
    used(part, found);
  }
  return found;
}

/** @param {"workflow" | "task" | "action"} name */
function schema(name) {
  const whole = parts[name];
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: `Curfew ${name}`,
    ...whole,
    $defs: Object.fromEntries([...used(whole)].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

export const documentSchemas = () => ({ workflow: schema("workflow"), task: schema("task"), action: schema("action") });
