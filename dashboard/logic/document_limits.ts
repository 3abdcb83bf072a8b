// The limits that a workflow's document has, where they are written, and documents with other limits. What is not understood is left out.
import { parseDuration } from "./words.ts";

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export interface DocumentLimit {
  /** The JSON pointer of the value. */
  pointer: string;
  /** What it limits. */
  title: string;
  ms: number;
  /** Durations are text, fields that end in `_ms` and those of `timeouts` may be numbers. */
  isNumber: boolean;
}

/** A member of an object as a step of a pointer. */
const step = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");

export function limitsOf(document: unknown): DocumentLimit[] {
  const found: DocumentLimit[] = [];
  const take = (holder: unknown, pointer: string, field: string, title: string): void => {
    if (!isObject(holder)) return;
    for (const name of [field, `${field}_ms`]) {
      const value = holder[name];
      const isNumber = typeof value === "number";
      const ms = isNumber ? value : parseDuration(textOf(value));
      // `adaptive`, `null` and expressions are no lengths.
      if (ms !== undefined && Number.isFinite(ms) && ms >= 1) found.push({ pointer: `${pointer}/${step(name)}`, title, ms, isNumber });
    }
  };
  const each = (holder: unknown, field: string, pointer: string, visit: (item: Json, pointer: string, name: string) => void): void => {
    const list = isObject(holder) ? holder[field] : undefined;
    if (Array.isArray(list)) list.forEach((item, index) => isObject(item) && visit(item, `${pointer}/${field}/${index}`, textOf(item["id"]) || textOf(item["ref"]) || `#${index}`));
  };
  const takeAction = (action: unknown, pointer: string, name: string): void => {
    const execution = isObject(action) ? action["execution"] : undefined;
    take(execution, `${pointer}/execution`, "timeout", `a call of ${name}`);
    if (isObject(execution)) take(execution["retry_policy"], `${pointer}/execution/retry_policy`, "total_timeout", `all calls of ${name}`);
  };

  if (!isObject(document)) return [];
  take(document, "", "timeout", "the run");
  take(document["gate"], "/gate", "timeout", "the gate of the run's limit");
  for (const [name, title] of [["flow", "runs, by default"], ["step", "steps, by default"], ["llm_call", "calls of models, by default"], ["tool", "calls of tools, by default"]] as const) take(document["timeouts"], "/timeouts", name, title);
  take(document["compensation"], "/compensation", "timeout", "compensations");
  each(document, "nodes", "", (node, pointer, name) => {
    take(node, pointer, "timeout", name);
    take(node["gate"], `${pointer}/gate`, "timeout", `the gate ${name}`);
    take(node["wait"], `${pointer}/wait`, "timeout", `the wait ${name}`);
    take(node["wait"], `${pointer}/wait`, "sleep", `the sleep of ${name}`);
  });
  each(document, "transitions", "", (transition, pointer) => take(transition["synchronization"], `${pointer}/synchronization`, "timeout", `the join at ${textOf(transition["to_node_id"])}`));
  each(document, "tasks", "", (task, pointer, name) => {
    take(task, pointer, "timeout", `the task ${name}`);
    each(task, "steps", pointer, (item, pointer, ref) => {
      take(item, pointer, "timeout_override", `a call of ${name}, step ${ref}`);
      takeAction(item["action"], `${pointer}/action`, `${name}, step ${ref}`);
    });
  });
  each(document, "actions", "", takeAction);
  return found;
}

/** A duration as documents have it. */
export function written(ms: number): string {
  const whole = Math.max(Math.round(ms), 1);
  if (whole % 1_000 !== 0) return `${whole}ms`;
  const seconds = whole / 1_000;
  const parts: [number, string][] = [[Math.floor(seconds / 3_600), "h"], [Math.floor((seconds % 3_600) / 60), "m"], [seconds % 60, "s"]];
  return parts.filter(([value]) => value > 0).map(([value, unit]) => `${value}${unit}`).join("");
}

export interface Patch {
  op: "replace";
  path: string;
  value: unknown;
}

/** The JSON Patch that sets limits to other lengths. */
export const patchOf = (limits: readonly DocumentLimit[], lengths: ReadonlyMap<string, number>): Patch[] =>
  limits.flatMap(({ pointer, ms, isNumber }) => {
    const wanted = lengths.get(pointer);
    return wanted === undefined || wanted === ms ? [] : [{ op: "replace" as const, path: pointer, value: isNumber ? Math.round(wanted) : written(wanted) }];
  });

/** The document with these values at places that it has. */
export function patched(document: unknown, patches: readonly Patch[]): unknown {
  const copy = structuredClone(document);
  for (const { path, value } of patches) {
    const steps = path.split("/").slice(1).map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = steps.pop();
    let holder: unknown = copy;
    for (const name of steps) holder = typeof holder === "object" && holder !== null && Object.hasOwn(holder, name) ? (holder as Json)[name] : undefined;
    if (last !== undefined && typeof holder === "object" && holder !== null && Object.hasOwn(holder, last)) (holder as Json)[last] = value;
  }
  return copy;
}
