// A start of a workflow to copy, with an input that has what the workflow asks for.
import { quoted } from "./output.ts";

type Json = Record<string, unknown>;

const EXAMPLES: Record<string, unknown> = { string: "...", integer: 1, number: 1, boolean: false, array: [], object: {} };

/** `start order --input '{"item":1}' --watch`. */
export function startWords({ id, input_schema }: Json & { id: string }): string {
  return `start ${quoted(id)} --input ${quoted(JSON.stringify(exampleOf(input_schema)))} --watch`;
}

/** Only required fields, and only their types: what the values mean is known to the author. */
function exampleOf(schema: unknown): Json {
  const { required, properties } = (schema ?? {}) as { required?: unknown; properties?: Record<string, { type?: unknown; enum?: unknown[] }> };
  const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
  return Object.fromEntries(
    names.map((name) => {
      const field = properties?.[name];
      const type = Array.isArray(field?.type) ? field.type[0] : field?.type;
      return [name, field?.enum?.[0] ?? EXAMPLES[String(type)] ?? "..."];
    }),
  );
}
