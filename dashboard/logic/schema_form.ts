// A form from a JSON Schema: one field for each property of an object whose kind is simple, JSON for everything else. The API checks the
// whole value; the form only helps to write it.

export type FieldKind = "text" | "long_text" | "number" | "integer" | "boolean" | "choice" | "json";

export interface Field {
  name: string;
  kind: FieldKind;
  title: string;
  hint: string;
  required: boolean;
  /** Of a choice. */
  options: unknown[];
  /** What the field shows first. */
  initial: string;
}

type Schema = Record<string, unknown>;

const isObject = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of a schema of an object. Undefined if there is no such schema: then the value is written as JSON. */
export function fieldsOf(schema: unknown): Field[] | undefined {
  if (!isObject(schema) || !isObject(schema["properties"])) return undefined;
  // A value that may also be null is an object in the form.
  const types = [schema["type"] ?? "object"].flat().filter((type) => type !== "null");
  if (types.length !== 1 || types[0] !== "object") return undefined;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(schema["properties"]).map(([name, property]) => fieldOf(name, isObject(property) ? property : {}, required.includes(name)));
}

function fieldOf(name: string, property: Schema, required: boolean): Field {
  const options = Array.isArray(property["enum"]) ? property["enum"] : "const" in property ? [property["const"]] : [];
  const kind = options.length > 0 ? "choice" : kindOf(property);
  const examples = Array.isArray(property["examples"]) ? property["examples"][0] : undefined;
  return {
    name,
    kind,
    title: typeof property["title"] === "string" ? property["title"] : name,
    hint: typeof property["description"] === "string" ? property["description"] : "",
    required,
    options,
    initial: textOf(kind, property["default"] ?? examples),
  };
}

function kindOf(property: Schema): FieldKind {
  const types = Array.isArray(property["type"]) ? property["type"].filter((type) => type !== "null") : [property["type"]];
  if (types.length !== 1) return "json";
  switch (types[0]) {
    case "string":
      return typeof property["maxLength"] === "number" && property["maxLength"] > 200 ? "long_text" : "text";
    case "number":
    case "integer":
    case "boolean":
      return types[0];
    default:
      return "json";
  }
}

/** What a field shows of a value. */
export function textOf(kind: FieldKind, value: unknown): string {
  if (value === undefined) return "";
  if (kind === "json" || kind === "choice") return JSON.stringify(value) ?? "";
  return String(value);
}

/** Why a field cannot be sent. */
export interface FieldProblem {
  name: string;
  message: string;
}

/** The value of a form, or what is wrong with it. An empty field that is not required is left out. */
export function valueOf(fields: Field[], texts: Record<string, string>): { value: Record<string, unknown>; problems: FieldProblem[] } {
  const entries: [string, unknown][] = [];
  const problems: FieldProblem[] = [];
  for (const field of fields) {
    const text = texts[field.name] ?? field.initial;
    if (text.trim() === "" && field.kind !== "text" && field.kind !== "long_text") {
      if (field.kind === "boolean" && field.required) entries.push([field.name, false]);
      else if (field.required) problems.push({ name: field.name, message: `${field.title} is required` });
      continue;
    }
    if (text === "" && !field.required) continue;
    const read = readField(field, text);
    if ("message" in read) problems.push({ name: field.name, message: read.message });
    else entries.push([field.name, read.value]);
  }
  // Not by assignment: a property may be named `__proto__`.
  return { value: Object.fromEntries(entries), problems };
}

function readField({ kind, title }: Field, text: string): { value: unknown } | { message: string } {
  switch (kind) {
    case "text":
    case "long_text":
      return { value: text };
    case "number":
    case "integer": {
      const value = Number(text);
      if (!Number.isFinite(value) || (kind === "integer" && !Number.isInteger(value))) return { message: `${title} is ${kind === "integer" ? "a whole number" : "a number"}` };
      return { value };
    }
    case "boolean":
      return { value: text === "true" };
    case "choice":
    case "json":
      return parsedJson(text, title);
  }
}

/** JSON that a person has typed. */
export function parsedJson(text: string, title: string): { value: unknown } | { message: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { message: `${title} is no JSON: ${error instanceof Error ? error.message : error}` };
  }
}
