// With `--json` the moments of the API are ISO 8601 instead of Unix milliseconds. What a workflow or a caller wrote is left alone.

/** The fields of the API that hold a moment. A test compares them with the OpenAPI document. */
export const MOMENTS: ReadonlySet<string> = new Set([
  "at",
  "began_at",
  "came_at",
  "created_at",
  "delivered_at",
  "dispatched_at",
  "due_at",
  "ended_at",
  "escalated_at",
  "first_arrival_at",
  "next_attempt_at",
  "opened_at",
  "reminded_at",
  "started_at",
  "timeout_at",
  "trial_at",
  "updated_at",
]);

/** The fields of the API that hold data of workflows and callers. */
export const DATA: ReadonlySet<string> = new Set([
  "add",
  "context",
  "document",
  "input",
  "input_schema",
  "item",
  "mock",
  "output",
  "prompt",
  "request",
  "state",
  "text",
]);

/** The latest moment that a date can hold. */
const LATEST = 8_640_000_000_000_000;

export function isoTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(isoTimes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, isoField(name, field)]));
}

function isoField(name: string, value: unknown): unknown {
  if (DATA.has(name)) return value;
  if (MOMENTS.has(name) && typeof value === "number" && value <= LATEST) return new Date(value).toISOString();
  return isoTimes(value);
}
