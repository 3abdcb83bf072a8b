// What differs between two documents, by path. Items of a list that have an id are compared by it, so that a new one in the middle is one
// difference.

export interface Difference {
  /** As `/nodes/think/timeout`: an id stands for the position where items have one. */
  path: string;
  /** Undefined: absent. */
  before: unknown;
  after: unknown;
}

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

export function differences(before: unknown, after: unknown, path = ""): Difference[] {
  if (isObject(before) && isObject(after)) return ofEntries(before, after, path);
  if (Array.isArray(before) && Array.isArray(after)) {
    const one = byId(before);
    const other = byId(after);
    if (one && other) return ofEntries(one, other, path);
    return ofEntries(Object.fromEntries(before.entries()), Object.fromEntries(after.entries()), path);
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path: path || "/", before, after }];
}

function ofEntries(before: Json, after: Json, path: string): Difference[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => differences(before[name], after[name], `${path}/${name}`));
}

/** Undefined unless every item has an id of its own. */
function byId(items: unknown[]): Json | undefined {
  const entries = items.map((item) => (isObject(item) && typeof item["id"] === "string" ? ([item["id"], item] as const) : undefined));
  const found = Object.fromEntries(entries.filter((entry) => entry !== undefined));
  return Object.keys(found).length === items.length ? found : undefined;
}
