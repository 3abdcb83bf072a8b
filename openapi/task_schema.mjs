// The schema of tasks: src/definition/task.rs and step.rs.
import {
  choice,
  duration,
  expression,
  forPeople,
  has,
  id,
  jsonSchema,
  object,
  oneSpelling,
  part,
  schemaField,
  targets,
  template,
  version,
} from "./document_parts.mjs";

export const DISPATCHES = ["auto", "inline", "direct", "queue"];

const outcome = (/** @type {string} */ description, /** @type {string} */ byDefault) =>
  choice(description, ["continue", "skip", "succeed", "fail"], byDefault);

const step = object(
  "A step: one action.",
  {
    "ref?": id("Its name, unique in the task; `step-1`, `step-2`, ... by default."),
    "ordinal?": { type: "integer", minimum: 0, maximum: 1_000_000, description: "The order of steps; the position by default." },
    "action_id?": id("An action of the catalogue or of the workflow. Either this or `action`."),
    "action_version?": version("Its version; the newest by default."),
    "action?": { ...part("inline_action"), description: "An action, written here. Either this or `action_id`." },
    "input_mapping?": template("The input of the action; that of the task by default."),
    "output_mapping?": targets("Where the result goes: `{target: value}` with `result`; `state.<ref>` by default."),
    "condition?": {
      description: "An expression, or `{if, then, else}`: whether the step runs.",
      anyOf: [
        { type: "string" },
        object("What follows from an expression.", {
          if: expression("The expression."),
          "then?": outcome("What happens if it is true.", "continue"),
          "else?": outcome("What happens if it is false.", "skip"),
        }),
      ],
    },
    "on_failure?": choice("What a failure does. `retry`: the task begins again. `continue`: the error goes to `state._errors`.", ["abort", "retry", "continue"], "abort"),
    ...duration("timeout_override", "The longest that one call may take, instead of the action's limit."),
    "allow_exceed_hard?": { type: "boolean", default: false, description: "Whether this step and its action may exceed the hard limits of the preset." },
  },
  [{ oneOf: [has("action_id"), has("action")] }, ...oneSpelling("timeout_override")],
);

const task = object(
  "A task: steps that one executor runs from start to end.",
  {
    id: id("The id of the task."),
    ...schemaField,
    ...forPeople,
    steps: { type: "array", minItems: 1, maxItems: 100, items: part("step"), description: "The steps." },
    ...duration("timeout", "The longest that one attempt at the whole task may take."),
    "dispatch?": choice("How the task reaches an executor.", DISPATCHES, "auto"),
    "retry?": object(
      "How often the whole task is tried.",
      {
        "max_attempts?": { type: "integer", minimum: 1, maximum: 100, default: 3, description: "The most attempts, the first one included." },
        "backoff?": choice("How the delay grows.", ["none", "linear", "exponential"], "none"),
        ...duration("initial_delay", "The delay before the second attempt; 1 s by default."),
        ...duration("max_delay", "The longest delay; 1 min by default."),
      },
      oneSpelling("initial_delay", "max_delay"),
    ),
    "input_schema?": jsonSchema("What the input must fit."),
    "output_schema?": jsonSchema("What the output must fit."),
  },
  oneSpelling("timeout"),
);

/** The `$defs` of tasks. */
export const taskParts = { task, step };
