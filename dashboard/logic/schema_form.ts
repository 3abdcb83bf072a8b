// A form from a JSON Schema: fields for what people can fill in, inside of objects and lists, too, and JSON for everything else. The API
// checks the whole value; the form only helps to write it.
import { short } from "./safe_text.ts";
import { words } from "./words.ts";

export type FieldKind = "text" | "long_text" | "date" | "moment" | "number" | "integer" | "boolean" | "choice" | "choices" | "object" | "list" | "variant" | "json";

export interface Field {
  name: string;
  kind: FieldKind;
  title: string;
  hint: string;
  required: boolean;
  isNullable: boolean;
  /** Of a choice, of choices, and of a variant its alternatives. */
  options: { value: unknown; title: string }[];
  /** Of an object; of a variant one for each alternative. */
  fields: Field[];
  /** Of a list: each of its items. */
  item: Field | undefined;
  /** Bounds of a number, of the length of a text, of the number of items. */
  least: number | undefined;
  most: number | undefined;
  /** Its default, or an example. */
  initial: unknown;
}

type Schema = Record<string, unknown>;

const isObject = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
const objectsIn = (value: unknown): Schema[] => (Array.isArray(value) ? value.filter(isObject) : []);
const textIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const numberIn = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** What is deeper, or more, is written as JSON. */
const DEPTH_MAX = 8;
const FIELDS_MAX = 500;
/** References that lead to each other. */
const REFERENCES_MAX = 8;
const LONG_TEXT = 200;

/** The form of a schema. Undefined if the value is written as JSON. */
export function formOf(schema: unknown): Field | undefined {
  if (!isObject(schema)) return undefined;
  const field = fieldOf("", schema, true, { root: schema, left: FIELDS_MAX }, []);
  return field.kind === "json" ? undefined : field;
}

interface Whole {
  root: Schema;
  /** How many fields there may still be. */
  left: number;
}

/** `above` are the references that led here, one for each step. */
function fieldOf(name: string, written: Schema, required: boolean, whole: Whole, above: readonly string[]): Field {
  const { root } = whole;
  const ref = textIn(written["$ref"]) ?? "";
  const isDeep = above.length > DEPTH_MAX || (whole.left -= 1) < 0 || (ref !== "" && above.includes(ref));
  const schema = withoutNull(resolved(written, root));
  const inner = [...above, ref];
  const { options, kind } = optionsOf(schema) ?? { options: [], kind: kindOf(schema) };
  const examples = Array.isArray(schema["examples"]) ? schema["examples"][0] : undefined;
  const field: Field = {
    name,
    kind: isDeep ? "json" : kind,
    title: textIn(schema["title"]) ?? name,
    hint: textIn(schema["description"]) ?? "",
    required,
    isNullable: allowsNull(resolved(written, root)),
    options,
    fields: [],
    item: undefined,
    least: numberIn(schema["minimum"] ?? schema["minLength"] ?? schema["minItems"]),
    most: numberIn(schema["maximum"] ?? schema["maxLength"] ?? schema["maxItems"]),
    initial: schema["default"] ?? examples,
  };
  if (field.kind === "object") {
    const wanted = Array.isArray(schema["required"]) ? schema["required"] : [];
    const fields = Object.entries(schema["properties"] as Schema).map(([name, property]) => fieldOf(name, isObject(property) ? property : {}, wanted.includes(name), whole, inner));
    // Stored documents do not keep the order of their members: what has to be filled in comes first.
    field.fields = [...fields.filter(({ required }) => required), ...fields.filter(({ required }) => !required)];
  } else if (field.kind === "list") {
    const item = fieldOf("", schema["items"] as Schema, true, whole, inner);
    if (item.kind === "json") field.kind = "json";
    else field.item = item;
  } else if (field.kind === "choices") {
    field.options = optionsOf(resolved(schema["items"] as Schema, root))!.options;
  } else if (field.kind === "variant") {
    field.fields = variantsOf(schema).map((variant) => fieldOf("", variant, true, whole, inner));
    field.options = field.fields.map(({ title, kind, fields }, index) => ({ value: index, title: title || fields.map(({ title }) => title).join(", ") || words(kind) }));
  }
  return field;
}

/** With what its `$ref` leads to. */
function resolved(schema: Schema, root: Schema): Schema {
  let current = schema;
  for (let steps = 0; typeof current["$ref"] === "string" && steps < REFERENCES_MAX; steps += 1) {
    const { $ref, ...beside } = current as Schema & { $ref: string };
    let target: unknown = $ref.startsWith("#") ? root : undefined;
    for (const step of $ref.split("/").slice(1)) target = isObject(target) || Array.isArray(target) ? (target as Schema)[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
    current = isObject(target) ? { ...target, ...beside } : beside;
  }
  return current;
}

const isNull = (schema: Schema): boolean => schema["type"] === "null" || schema["const"] === null;
const alternativesOf = (schema: Schema): Schema[] => objectsIn(schema["oneOf"] ?? schema["anyOf"]);
const variantsOf = (schema: Schema): Schema[] => alternativesOf(schema).filter((variant) => !isNull(variant));
const allowsNull = (schema: Schema): boolean => (Array.isArray(schema["type"]) && schema["type"].includes("null")) || alternativesOf(schema).some(isNull);

/** An alternative to nothing is no choice: an empty field says the same. */
function withoutNull(schema: Schema): Schema {
  const variants = variantsOf(schema);
  if (variants.length !== 1 || alternativesOf(schema).length !== 2) return schema;
  const { oneOf: _, anyOf: __, ...beside } = schema;
  return { ...variants[0], ...beside };
}

function optionsOf(schema: Schema): { kind: "choice"; options: Field["options"] } | undefined {
  if (Array.isArray(schema["enum"]) && schema["enum"].length > 0) return { kind: "choice", options: schema["enum"].map((value) => ({ value, title: short(value) })) };
  if ("const" in schema) return { kind: "choice", options: [{ value: schema["const"], title: textIn(schema["title"]) ?? short(schema["const"]) }] };
  const alternatives = alternativesOf(schema);
  if (alternatives.length === 0 || !alternatives.every((one) => "const" in one)) return undefined;
  return { kind: "choice", options: alternatives.map((one) => ({ value: one["const"], title: textIn(one["title"]) ?? short(one["const"]) })) };
}

function kindOf(schema: Schema): FieldKind {
  const types = Array.isArray(schema["type"]) ? schema["type"].filter((type) => type !== "null") : [schema["type"]];
  if (types.length !== 1) return "json";
  switch (types[0]) {
    case "string":
      if (schema["format"] === "date") return "date";
      if (schema["format"] === "date-time") return "moment";
      return (numberIn(schema["maxLength"]) ?? 0) > LONG_TEXT ? "long_text" : "text";
    case "number":
    case "integer":
    case "boolean":
      return types[0];
    case "array":
      if (!isObject(schema["items"]) || "prefixItems" in schema) return "json";
      return optionsOf(schema["items"]) ? "choices" : "list";
    case "object":
    case undefined:
      if (isObject(schema["properties"])) return "object";
      return variantsOf(schema).length > 1 ? "variant" : "json";
    default:
      return "json";
  }
}

/** What people have typed, by the place in the form. */
export type Texts = Readonly<Record<string, string>>;

/** The place of a field inside of an object, and of an item inside of a list by its key. */
export const placeIn = (place: string, name: string): string => `${place}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
/** The place of an alternative. */
export const placeOfVariant = (place: string, index: string): string => `${place}?${index}`;
const placeOfKeys = (place: string): string => `${place}#`;

/** The keys of a list's items, in their order: numbers that are never used again, so that an item keeps its texts when others are removed. */
export const keysAt = (place: string, texts: Texts): string[] => (texts[placeOfKeys(place)] ?? "").split(",").filter((key) => key !== "");

export function withItem(place: string, texts: Texts, item: Field): Texts {
  const keys = keysAt(place, texts);
  const key = String(keys.reduce((most, key) => Math.max(most, Number(key)), -1) + 1);
  return { ...texts, ...textsOf(item, undefined, placeIn(place, key)), [placeOfKeys(place)]: [...keys, key].join(",") };
}

export function withoutItem(place: string, texts: Texts, key: string): Texts {
  const inside = placeIn(place, key);
  const kept = Object.entries(texts).filter(([at]) => at !== inside && !isInside(at, inside));
  return { ...Object.fromEntries(kept), [placeOfKeys(place)]: keysAt(place, texts).filter((other) => other !== key).join(",") };
}

const isInside = (at: string, place: string): boolean => at.startsWith(`${place}/`) || at.startsWith(`${place}?`) || at.startsWith(`${place}#`);

/** The texts that show a value; without one what the schema proposes. */
export function textsOf(field: Field, given?: { value: unknown }, place = ""): Record<string, string> {
  const value = given ? given.value : field.initial;
  const inner = (child: Field, held: unknown, at: string): Record<string, string> => textsOf(child, given || held !== undefined ? { value: held } : undefined, at);
  switch (field.kind) {
    case "object": {
      const members = isObject(value) ? value : {};
      return Object.assign({}, ...field.fields.map((child) => inner(child, Object.hasOwn(members, child.name) ? members[child.name] : undefined, placeIn(place, child.name))));
    }
    case "list": {
      const items: unknown[] = Array.isArray(value) ? value : given || !field.required ? [] : Array.from({ length: Math.min(field.least ?? 0, 20) });
      return Object.assign({ [placeOfKeys(place)]: items.map((_, index) => index).join(",") }, ...items.map((item, index) => inner(field.item!, item, placeIn(place, String(index)))));
    }
    case "variant": {
      if (value === undefined) return {};
      const fitting = field.fields.findIndex((variant) => shows(variant, value));
      return fitting < 0 ? {} : { [place]: String(fitting), ...textsOf(field.fields[fitting]!, { value }, placeOfVariant(place, String(fitting))) };
    }
    default:
      return value === undefined || (value === null && field.kind !== "choice" && field.kind !== "json") ? {} : { [place]: textOf(field.kind, value) };
  }
}

/** Whether the form can show all of a value. */
export const shows = (field: Field, value: unknown): boolean => contains(valueOf(field, textsOf(field, { value })).value, value);

function contains(whole: unknown, part: unknown): boolean {
  if (Array.isArray(whole) && Array.isArray(part)) return whole.length === part.length && part.every((item, index) => contains(whole[index], item));
  if (isObject(whole) && isObject(part)) return Object.entries(part).every(([name, item]) => Object.hasOwn(whole, name) && contains(whole[name], item));
  return whole === part;
}

function textOf(kind: FieldKind, value: unknown): string {
  if (kind === "json" || kind === "choice" || kind === "choices") return JSON.stringify(value) ?? "";
  if (kind !== "moment") return String(value);
  const at = new Date(String(value));
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().replace(/(:00)?\.000Z$|Z$/, "");
}

/** Why a field cannot be sent. */
export interface FieldProblem {
  place: string;
  message: string;
}

/** The value of a form, and what is wrong with it. What is empty and not required is left out. */
export function valueOf(form: Field, texts: Texts): { value: unknown; problems: FieldProblem[] } {
  const problems: FieldProblem[] = [];
  const untouched = textsOf(form);

  const read = (field: Field, place: string, where: string): { value: unknown } | undefined => {
    const text = texts[place] ?? "";
    const problem = (message: string): undefined => void problems.push({ place, message: `${where}${field.title || "The value"} ${message}` });
    const inner = `${where}${field.title ? `${field.title}: ` : ""}`;
    switch (field.kind) {
      case "object": {
        const isTouched = Object.entries(texts).some(([at, typed]) => isInside(at, place) && typed !== (untouched[at] ?? ""));
        if (place !== "" && !field.required && field.initial === undefined && !isTouched) return undefined;
        const entries = field.fields.flatMap((child): [string, unknown][] => {
          const member = read(child, placeIn(place, child.name), inner);
          return member ? [[child.name, member.value]] : [];
        });
        // Not by assignment: a property may be named `__proto__`.
        return { value: Object.fromEntries(entries) };
      }
      case "list": {
        const keys = keysAt(place, texts);
        if (keys.length === 0 && !field.required) return undefined;
        if (field.least !== undefined && keys.length < field.least) problem(`has at least ${field.least}`);
        if (field.most !== undefined && keys.length > field.most) problem(`has at most ${field.most}`);
        return { value: keys.flatMap((key, index) => read(field.item!, placeIn(place, key), `${where}${field.title ? `${field.title} ` : ""}${index + 1}: `) ?? []).map(({ value }) => value) };
      }
      case "variant": {
        const chosen = field.fields[text === "" ? -1 : Number(text)];
        if (chosen) return read(chosen, placeOfVariant(place, text), where);
        return field.required && !field.isNullable ? problem("is required") : undefined;
      }
    }
    const isText = field.kind === "text" || field.kind === "long_text";
    if (isText ? text === "" : text.trim() === "") {
      if (field.kind === "boolean" && field.required) return { value: false };
      if (!field.required) return undefined;
      return field.isNullable ? { value: null } : problem("is required");
    }
    const found = readText(field, text);
    return "message" in found ? problem(found.message) : found;
  };

  // Where nothing is a value, too, a form that was left empty is nothing.
  if (form.isNullable && Object.values(untouched).every((text) => text === "") && Object.values(texts).every((text) => text === "")) return { value: undefined, problems };
  return { value: read(form, "", "")?.value, problems };
}

function readText({ kind, least = -Infinity, most = Infinity }: Field, text: string): { value: unknown } | { message: string } {
  switch (kind) {
    case "number":
    case "integer": {
      const value = Number(text);
      if (!Number.isFinite(value) || (kind === "integer" && !Number.isInteger(value))) return { message: `is ${kind === "integer" ? "a whole number" : "a number"}` };
      if (value < least) return { message: `is at least ${least}` };
      return value > most ? { message: `is at most ${most}` } : { value };
    }
    case "boolean":
      return { value: text === "true" };
    case "moment": {
      const at = new Date(text);
      return Number.isNaN(at.getTime()) ? { message: "is no moment" } : { value: at.toISOString() };
    }
    case "choice":
    case "choices":
    case "json": {
      const read = parsedJson(text, "");
      return "message" in read ? { message: read.message.trim() } : read;
    }
    default: {
      // As the API counts them.
      const length = [...text].length;
      if (length < least) return { message: `has at least ${least} characters` };
      return length > most ? { message: `has at most ${most} characters` } : { value: text };
    }
  }
}

/** What the bounds of a field are. */
export function boundsOf({ kind, least, most }: Field): string {
  const unit = kind === "text" || kind === "long_text" ? " characters" : "";
  if (kind !== "number" && kind !== "integer" && unit === "") return "";
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  return least !== undefined ? `at least ${least}${unit}` : most !== undefined ? `at most ${most}${unit}` : "";
}

/** JSON that a person has typed. */
export function parsedJson(text: string, title: string): { value: unknown } | { message: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { message: `${title} is no JSON: ${error instanceof Error ? error.message : error}` };
  }
}
