// A value that fits a JSON Schema, as far as its bounds say it: what a simulated person enters, until another one is written.

type Schema = Record<string, unknown>;

const isObject = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
const numberIn = (value: unknown, otherwise: number): number => (typeof value === "number" ? value : otherwise);
const DEPTH_MAX = 8;
const ITEMS_MAX = 20;
const CHARACTERS_MAX = 1_000;

export function sampleOf(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (!isObject(schema) || depth > DEPTH_MAX) return null;
  if (typeof schema["$ref"] === "string") return sampleOf(targetOf(schema["$ref"], root), root, depth + 1);
  if (schema["default"] !== undefined) return schema["default"];
  if (Array.isArray(schema["examples"]) && schema["examples"].length > 0) return schema["examples"][0];
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["enum"]) && schema["enum"].length > 0) return schema["enum"][0];
  const alternatives = schema["oneOf"] ?? schema["anyOf"];
  if (Array.isArray(alternatives) && !isObject(schema["properties"])) return sampleOf(alternatives[0], root, depth + 1);
  const [type] = [schema["type"]].flat().filter((type) => type !== "null");
  switch (type) {
    case "string":
      return textOf(schema);
    case "number":
    case "integer":
      return amountOf(schema);
    case "boolean":
      return true;
    case "array":
      return Array.from({ length: Math.min(numberIn(schema["minItems"], 0), ITEMS_MAX) }, () => sampleOf(schema["items"], root, depth + 1));
    case "object":
    case undefined:
      return type === undefined && !isObject(schema["properties"]) ? null : membersOf(schema, root, depth);
    default:
      return null;
  }
}

/** What has to be there, and what has a default. */
function membersOf(schema: Schema, root: unknown, depth: number): Schema {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const members = Object.entries(isObject(schema["properties"]) ? schema["properties"] : {}).filter(([name, property]) => required.includes(name) || (isObject(property) && property["default"] !== undefined));
  return Object.fromEntries(members.map(([name, property]) => [name, sampleOf(property, root, depth + 1)]));
}

function textOf({ format, minLength, maxLength }: Schema): string {
  if (format === "date") return "2026-01-01";
  if (format === "date-time") return "2026-01-01T00:00:00Z";
  return "text".padEnd(Math.min(numberIn(minLength, 0), CHARACTERS_MAX), "x").slice(0, numberIn(maxLength, Infinity));
}

function amountOf({ type, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }: Schema): number {
  const step = numberIn(multipleOf, type === "integer" ? 1 : 0);
  const [least, most] = [numberIn(minimum ?? exclusiveMinimum, -Infinity), numberIn(maximum ?? exclusiveMaximum, Infinity)];
  const inside = (amount: number): boolean => Number.isFinite(amount) && amount >= least && amount <= most && amount !== exclusiveMinimum && amount !== exclusiveMaximum && (step === 0 || Number.isInteger(amount / step));
  const near = step === 0 ? [] : [Math.ceil(least / step) * step, (Math.floor(least / step) + 1) * step, Math.floor(most / step) * step, (Math.ceil(most / step) - 1) * step];
  return [1, least, most, (least + most) / 2, least + 1, most - 1, ...near, 0].find(inside) ?? 1;
}

function targetOf(ref: string, root: unknown): unknown {
  let target: unknown = ref.startsWith("#") ? root : undefined;
  for (const step of ref.split("/").slice(1)) target = isObject(target) ? target[step.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  return target;
}
