// The bodies of requests: src/api/control.rs, start.rs, batch.rs, bulk.rs. Every field that is not listed is refused.
import { any, body, flag, list, NAME, object, oneOf, orNull, ref, text, whole } from "./shapes.mjs";
import { RUN_STATUSES } from "./run_shapes.mjs";

const ID = "^[a-z0-9_-]{1,64}$";
const DURATION = "30s, 2m, 1h30m";
const DAYS_30_MS = 2_592_000_000;

/** The length of the name of a caller. */
export const CALLER_NAME = { minLength: 1, maxLength: 256 };
const by = text("The name of the sender. It counts in development only, where senders have no name of their own.", CALLER_NAME);
const version = whole("A version of the workflow.", { minimum: 1 });

const start = {
  "run_id?": text("The id of the new run. With the same id and the same request the same run is returned. A random one is made by default.", {
    pattern: NAME,
  }),
  "version?": version,
  "input?": any("The input of the run; `{}` by default."),
  "by?": by,
};
/** A run cannot lift the limit of its workflow, so null is no limit. */
const limit = {
  timeout: text(`The longest that the run may take: ${DURATION}.`),
  timeout_ms: whole("The same in milliseconds. Only one of both may be given.", { minimum: 1 }),
};

/** @param {Schema} schema */
const withLimit = (schema) => ({
  ...schema,
  properties: { ...schema.properties, ...limit },
  not: { required: ["timeout", "timeout_ms"], description: "Both at once are refused." },
});

const extension = {
  ...object("How much longer the run may take: exactly one of the three.", {
    "by_ms?": whole("So much longer. Milliseconds.", { minimum: 1, maximum: DAYS_30_MS }),
    "by?": text(`So much longer: ${DURATION}.`),
    "until?": { description: "Until then: Unix milliseconds, or ISO 8601. Null counts as absent.", type: ["integer", "string", "null"], minimum: 0 },
  }),
  oneOf: [
    { required: ["by_ms"], properties: { until: { type: "null" } } },
    { required: ["by"], properties: { until: { type: "null" } } },
    {
      required: ["until"],
      properties: { until: { type: ["integer", "string"] }, by: { type: "null" }, by_ms: { type: "null" } },
      not: { anyOf: [{ required: ["by"] }, { required: ["by_ms"] }] },
    },
  ],
};
const mode = oneOf("`retry_step`: go on from what failed. `discard_and_retry`: drop what the failed steps did. `escalate`: ask a person first.", [
  "retry_step",
  "discard_and_retry",
  "escalate",
]);
const reason = text("Why. It is kept on the run; 4 KiB at most.");

/** @typedef {import("./shapes.mjs").Schema} Schema */

/** The values of the list of runs. */
const filter = object("Which runs, by the filters of the list. All of them have to match; at least one is needed.", {
  "status?": {
    description: "One status, several with commas, or a list.",
    anyOf: [{ type: "string", minLength: 1 }, { type: "array", minItems: 1, items: oneOf("A status.", RUN_STATUSES) }],
  },
  "workflow?": text("The id of the workflow.", { pattern: ID }),
  "tag?": text("A tag of the workflow.", { minLength: 1 }),
  "since?": { description: "Runs that started then or later. Unix milliseconds.", type: ["integer", "string"] },
  "until?": { description: "Runs that started then or earlier. Unix milliseconds.", type: ["integer", "string"] },
  "parent?": text("The run that called it.", { minLength: 1 }),
  "id_prefix?": text("How the ids begin.", { minLength: 1 }),
  "all?": orNull(flag("Every run. No other filter may be given with it.")),
});

/** @param {string} description @param {Schema} control @param {boolean} [required] */
const bulk = (description, control, required = false) => ({
  ...object(description, {
    "filter?": filter,
    "ids?": list("Which runs, by their ids.", text("The id of a run."), { minItems: 1, maxItems: 1000 }),
    [required ? "with" : "with?"]: control,
  }),
  oneOf: [{ required: ["filter"] }, { required: ["ids"] }],
});
/** @param {Record<string, Schema>} fields */
const withFields = (fields) => body("The body of the control.", fields);

/** @type {Record<string, Schema>} */
export const bodyShapes = {
  StartBody: withLimit(body("How to start a run.", start)),
  BatchBody: object("Several starts.", {
    items: list(
      "The starts. What is wrong with one of them does not affect the others.",
      { anyOf: [ref("BatchItem"), any("Any other item is refused by itself.")] },
      { minItems: 1, maxItems: 100 },
    ),
  }),
  BatchItem: withLimit(body("A start of a batch.", { workflow_id: text("The workflow to run.", { pattern: ID }), ...start })),
  ByBody: body("The name of the sender.", { "by?": by }),
  CancelBody: body("Why the run is cancelled.", { "reason?": reason, "by?": by }),
  ExtendBody: extension,
  RetryBody: body("How the run goes on.", {
    mode,
    "token_id?": text("Only the writes of this token are discarded.", { pattern: "^t[0-9]+$" }),
    "version?": version,
    "by?": by,
  }),
  RestartBody: body("Where the run begins again.", {
    "from_node_id?": text("From this node, with the state as it was then. From the start by default."),
    "version?": version,
    "by?": by,
  }),
  DecisionBody: body("The decision.", {
    choice: text("One of the choices of the gate."),
    "input?": any("What the `input_schema` of the gate asks for."),
    "comment?": text("A remark."),
    "by?": by,
  }),
  BulkCancelBody: bulk("Which runs to cancel.", orNull(withFields({ "reason?": reason, "by?": by }))),
  BulkPauseBody: bulk("Which runs to pause.", orNull(withFields({ "by?": by }))),
  BulkResumeBody: bulk("Which runs to resume.", orNull(withFields({ "by?": by }))),
  BulkExtendBody: bulk("Which runs to extend, and by how much.", extension, true),
  BulkRetryBody: bulk("Which runs to retry, and how.", withFields({ mode, "by?": by }), true),
};
