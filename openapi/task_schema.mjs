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
  taskTargets,
  template,
  version,
  without,
} from "./document_parts.mjs";

export const DISPATCHES = ["auto", "inline", "direct", "queue"];

export const DISPATCH =
  "How the task reaches an executor. `auto`: chosen for each attempt. `inline`: inside the coordinator, only for tasks that make no call. `direct`: a call that is held open. `queue`: a message, for work of minutes; only where the deployment has the queue on.";

const outcome = (/** @type {string} */ description, /** @type {string} */ byDefault) =>
  choice(
    `${description} \`continue\`: the step runs. \`skip\`: it does not, and the next step follows. \`succeed\`: the task ends here as completed. \`fail\`: the task fails with \`condition_failed\`.`,
    ["continue", "skip", "succeed", "fail"],
    byDefault,
  );

const step = object(
  "A step of a task: one action, with what goes into it and out of it.",
  {
    "ref?": id("The name of the step, unique in the task; `step-1`, `step-2`, ... by position by default."),
    "ordinal?": { type: "integer", minimum: 0, maximum: 1_000_000, description: "Steps run in the order of these numbers; the position in the list by default." },
    "action_id?": id("The id of an action of the workflow document or of the catalogue. Write either this or `action`."),
    "action_version?": version("The version of the action that `action_id` names; the newest when the run starts by default."),
    "action?": { ...part("inline_action"), description: "An action, written here. Write either this or `action_id`." },
    "input_mapping?": template("The input of the action, over `input`, `state` and `output` of the task; the input of the task by default."),
    "output_mapping?": taskTargets("Where the result goes, as `{target: value}` with the result as `result`. A target is `state.x`, `output.y`, or `y` for `output.y`; `state.<ref>` by default."),
    "condition?": {
      description: "Whether the step runs: an expression that skips it if false, or `{if, then, else}`.",
      anyOf: [
        { type: "string", minLength: 1 },
        object("What happens if an expression is true, and if it is false.", {
          if: expression("The expression that decides, without `${}`."),
          "then?": outcome("What happens if `if` is true.", "continue"),
          "else?": outcome("What happens if `if` is false.", "skip"),
        }),
      ],
    },
    "on_failure?": choice("What follows a failure of the step. `abort`: the task fails. `retry`: the task begins again from its first step, as `retry` of the task allows. `continue`: the error is added to `state._errors` and the next step follows.", ["abort", "retry", "continue"], "abort"),
    ...duration("timeout_override", "The longest that one call may take, instead of the `timeout` of the action."),
    "allow_exceed_hard?": { type: "boolean", default: false, description: "Whether this step and its action may exceed the hard limits of the preset." },
  },
  [
    { oneOf: [has("action_id"), has("action")] },
    { anyOf: [has("action_id"), without(["action_version"])] },
    ...oneSpelling("timeout_override"),
  ],
);

const task = object(
  "A task: steps that one executor runs from start to end.",
  {
    id: id("The id of the task, by which nodes name it."),
    ...schemaField,
    ...forPeople,
    steps: { type: "array", minItems: 1, maxItems: 100, items: part("step"), description: "The steps, which run one after the other." },
    ...duration("timeout", "The longest that one attempt at the whole task may take; only the limit of the node applies by default."),
    "dispatch?": choice(DISPATCH, DISPATCHES, "auto"),
    "retry?": object(
      "How often the whole task is tried, where a step fails that has `on_failure: \"retry\"`.",
      {
        "max_attempts?": { type: "integer", minimum: 1, maximum: 100, default: 3, description: "The most attempts at the task, the first one included." },
        "backoff?": choice("How the delay grows. `none`: no delay. `linear`: `initial_delay` times the number of the retry. `exponential`: `initial_delay`, doubled with each further retry.", ["none", "linear", "exponential"], "none"),
        ...duration("initial_delay", "How long to wait before the second attempt; 1 s by default. Without effect if `backoff` is `none`."),
        ...duration("max_delay", "The longest that a delay may become; 1 min by default."),
      },
      oneSpelling("initial_delay", "max_delay"),
    ),
    "input_schema?": jsonSchema("A JSON Schema, draft 2020-12, that the input of the task must fit."),
    "output_schema?": jsonSchema("A JSON Schema, draft 2020-12, that the output of the task must fit."),
  },
  oneSpelling("timeout"),
);

/** The `$defs` of tasks. */
export const taskParts = { task, step };
