// The schema of workflows: src/definition/workflow.rs, node.rs, wait.rs, transition.rs, fan.rs, ending.rs and timeouts.rs.
import { EVENT_KINDS } from "./history_shapes.mjs";
import { CLASSES } from "./run_shapes.mjs";
import {
  choice,
  duration,
  EXPRESSION,
  expression,
  forPeople,
  has,
  id,
  jsonSchema,
  NAME,
  object,
  oneSpelling,
  part,
  schemaField,
  string,
  targets,
  template,
  version,
  when,
  without,
} from "./document_parts.mjs";
import { DISPATCHES } from "./task_schema.mjs";

const FORMS = ["task_id", "action_id", "workflow_id", "gate", "wait"];
const WORK = ["task_id", "action_id", "workflow_id"];
/** Reserved, so that no expression means two things. */
const NO_VARIABLES = ["input", "state", "output", "run", "error", "result", "_branch", "secret", "true", "false", "null", "in", "now"];
const fraction = (/** @type {string} */ description) => ({ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1, description });
const flag = (/** @type {string} */ description) => ({ type: "boolean", default: false, description });
const count = (/** @type {number} */ least, /** @type {number} */ most, /** @type {string} */ description) => ({ type: "integer", minimum: least, maximum: most, description });

/** @param {string[]} fields */
const atMostOne = (fields) => fields.map((field, index) => when(has(field), without(fields.slice(index + 1))));
/** @param {string[]} fields */
const none = (fields) => ({ allOf: fields.map((field) => without([field])) });

/** What a node, a compensation and an end handler may run. */
const work = {
  "task_id?": id("The task to run."),
  "task_version?": version("Its version; the newest by default."),
  "action_id?": id("The action to run, as a task of one step."),
  "action_version?": version("Its version; the newest by default."),
  "workflow_id?": id("The workflow to run as a sub-workflow."),
  "workflow_version?": version("Its version; the newest by default."),
  "on_failure?": choice("Only with `workflow_id`. `catch`: a failed sub-workflow completes the node with its error.", ["propagate", "catch"], "propagate"),
  "input_mapping?": template("The input of the work; that of the run by default."),
};
const oneWork = [{ anyOf: WORK.map(has) }, ...atMostOne(WORK), { anyOf: [has("workflow_id"), without(["on_failure"])] }];

const VERSIONS = ["task_version", "action_version", "workflow_version", "on_failure"];
/** The fields that mean nothing on a node without work. */
const ONLY_WORK = [...VERSIONS, "input_mapping", "on_timeout", "max_retries", "dispatch", "escalate_on", "compensate"];
const notAdaptive = { properties: { timeout: { not: { const: "adaptive" } } } };

const node = object(
  "A node: what happens when a token comes there. It has exactly one of `task_id`, `action_id`, `workflow_id`, `gate` and `wait`, or none of them.",
  {
    id: id("Its id, unique in the workflow."),
    ...forPeople,
    ...work,
    "gate?": part("gate"),
    "wait?": part("wait"),
    "output_mapping?": targets("Where the result goes: `{target: value}` with `result`; `state.<node id>` by default. `{}` drops it."),
    ...duration("timeout", 'The longest that one attempt may take, or "adaptive": learnt from the last runs.', { or: [{ const: "adaptive" }] }),
    "on_timeout?": choice("What follows an attempt that took too long.", ["fail", "retry"], "fail"),
    "max_retries?": { ...count(0, 100, "Attempts that may follow a timeout."), default: 3 },
    "allow_exceed_hard?": flag("Whether this node and what it runs may exceed the hard limits of the preset."),
    "dispatch?": choice("How the task reaches an executor; that of the task by default.", DISPATCHES),
    "escalate_on?": { type: "array", items: { enum: CLASSES }, description: "Classes of failures that open a gate instead of failing the token." },
    "on_no_match?": choice("What happens if no transition matches; that of the workflow by default.", ["fail", "end"]),
    "compensate?": part("compensate"),
  },
  [
    ...atMostOne(FORMS),
    ...oneSpelling("timeout"),
    when(has("task_id"), without(["action_version", "workflow_version", "on_failure"])),
    when(has("action_id"), without(["task_version", "workflow_version", "on_failure"])),
    when(has("workflow_id"), without(["task_version", "action_version", "dispatch"])),
    when(has("gate"), { allOf: [without(ONLY_WORK), notAdaptive] }),
    when(has("wait"), without([...ONLY_WORK, "timeout", "timeout_ms"])),
    when(none(FORMS), without([...ONLY_WORK, "timeout", "timeout_ms"])),
  ],
);

/** A decision by default needs its choice. @param {string} name */
const needsChoice = (name) =>
  when(
    { required: ["on_timeout"], properties: { on_timeout: { const: name } } },
    { properties: { choices: { anyOf: [{ type: "null" }, { contains: { const: name } }] } } },
  );

const gate = object(
  "A gate: a person decides.",
  {
    "prompt?": template("What is asked."),
    "choices?": {
      type: "array",
      minItems: 1,
      uniqueItems: true,
      items: { type: "string", minLength: 1, maxLength: 64 },
      default: ["approve", "reject"],
      description: "The possible decisions, each of 1 to 64 bytes.",
    },
    "input_schema?": jsonSchema("What the `input` of a decision must fit."),
    ...duration("timeout", "How long the gate waits; for ever by default."),
    "on_timeout?": choice("What happens then. `approve` and `reject` must be among the choices.", ["fail", "approve", "reject", "cancel_all"], "fail"),
    "remind_at?": { type: "array", items: fraction("A fraction of the timeout."), default: [0.75], description: "When reminders are sent." },
    "four_eyes?": flag("Whether the caller that started the run may not decide."),
  },
  [...oneSpelling("timeout"), needsChoice("approve"), needsChoice("reject")],
);

const computed = { type: "string", pattern: EXPRESSION };
const wait = object(
  "A wait for a moment or a signal: exactly one of `sleep`, `until` and `signal`.",
  {
    ...duration("sleep", "How long to wait, or one `${...}` that gives it.", { never: false, or: [computed], orMillis: [computed] }),
    "until?": { description: "When to go on: Unix milliseconds, or ISO 8601 with its offset.", anyOf: [{ type: "string" }, count(0, 253_402_300_799_999, "Unix milliseconds.")] },
    "signal?": { type: "string", pattern: NAME, description: "The name of a signal; the result is its body." },
    ...duration("timeout", "Only with `signal`: how long to wait."),
    "on_timeout?": choice("Only with `signal`: what happens then. `continue`: the result is null.", ["fail", "continue"], "fail"),
  },
  [
    { oneOf: [{ anyOf: [{ required: ["sleep"] }, { required: ["sleep_ms"] }] }, has("until"), has("signal")] },
    ...oneSpelling("sleep", "timeout"),
    { anyOf: [has("signal"), without(["timeout", "timeout_ms", "on_timeout"])] },
  ],
);

const synchronization = object(
  "A join: it waits for the branches of a fan-out and goes on with one token.",
  {
    sibling_group: string("The group to join."),
    "strategy?": {
      description: "How many branches have to arrive.",
      anyOf: [{ enum: ["all", "any"] }, object("So many of them.", { m_of_n: count(1, 1_000, "The number of branches.") })],
      default: "all",
    },
    ...duration("timeout", "How long to wait, from the first arrival."),
    "on_timeout?": choice("What happens then.", ["proceed_with_available", "fail"], "fail"),
    "on_branch_failure?": choice("For `all`: what a failed branch does.", ["proceed_with_available", "fail"], "fail"),
    "on_early_complete?": choice("What happens to branches that are still running when the join fires.", ["abandon", "cancel", "allow_late_merge"], "abandon"),
    "merge?": object("Where the results of the branches go.", {
      "source?": expression("An expression over `_branch`; `_branch.output` by default."),
      target: string("A target: `state.<name>`, `output.<name>` or, in a nested join, `_branch.output`."),
      "strategy?": choice("How they are put together.", ["append", "concat", "merge_object", "keyed_by_branch", "last_wins"], "append"),
    }),
  },
  oneSpelling("timeout"),
);

const transition = object(
  "A transition from one node to another.",
  {
    "id?": id("Its id, unique in the workflow; `t1`, `t2`, ... by position by default."),
    from_node_id: string("The node that it leaves."),
    to_node_id: string("The node that it leads to."),
    "on?": choice("The end of the token that it follows.", ["success", "failure", "timeout"], "success"),
    "priority?": { ...count(-1_000_000, 1_000_000, "The lowest number is tried first."), default: 0 },
    "condition?": expression("An expression that must be true."),
    "loop_config?": object("How often it may fire on one path.", { "max_iterations?": count(1, 1_000_000, "The number of times.") }),
    "spawn_count?": count(1, 1_000, "So many tokens instead of one: a fan-out."),
    "foreach?": object("One token for each item of a list: a fan-out.", {
      collection: expression("An expression that gives a list of at most 1 000 items."),
      "item_var?": { type: "string", pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$", not: { enum: NO_VARIABLES }, default: "item", description: "The name of the item in expressions of the branch." },
    }),
    "sibling_group?": id("The name of the group that the tokens belong to; the id of a transition that fans out by default."),
    "synchronization?": part("synchronization"),
  },
  atMostOne(["foreach", "spawn_count"]),
);

const statuses = (/** @type {string} */ description, /** @type {string[]} */ names) => ({ type: "array", items: { enum: names }, description });
const layer = (/** @type {string} */ name, /** @type {string} */ description) => duration(name, description, { or: [{ type: "integer", minimum: 1, maximum: 1_000_000_000_000_000 }] });

const workflow = object(
  "A workflow: a graph of nodes and transitions.",
  {
    id: id("The id of the workflow. It may be left out in a PUT, where the path names it."),
    ...schemaField,
    ...forPeople,
    "tags?": { type: "array", maxItems: 20, items: { type: "string", minLength: 1, maxLength: 64 }, description: "Tags of 1 to 64 bytes; runs can be listed by them." },
    nodes: { type: "array", minItems: 1, maxItems: 500, items: part("node"), description: "The nodes." },
    "transitions?": { type: "array", maxItems: 2_000, items: part("transition"), description: "The transitions." },
    "initial_node_id?": string("The node where the first token is created; the first one by default."),
    "tasks?": { type: "array", items: part("task"), description: "Tasks, written here. They are used before those of the catalogue." },
    "actions?": { type: "array", items: part("action"), description: "Actions, written here. They are used before those of the catalogue." },
    "input_schema?": jsonSchema("What the input of a start must fit."),
    "output_schema?": jsonSchema("What the output of a run must fit."),
    "output_mapping?": template("The output of a run, from `input`, `state` and `output`; `output` by default."),
    ...duration("timeout", "The longest that a run may take; that of the preset by default."),
    "on_timeout?": choice("What happens then. `human_gate`: a person is asked.", ["human_gate", "cancel_all", "fail"], "human_gate"),
    "gate?": object(
      "How long the gate of `human_gate` waits for a person.",
      {
        ...duration("timeout", "How long it waits; 7 days by default.", { never: false }),
        "on_timeout?": choice("What happens then. `cancel_all`: the run ends as `timed_out`.", ["cancel_all", "fail"], "cancel_all"),
      },
      oneSpelling("timeout"),
    ),
    "timeouts?": object(
      "Defaults for the steps of this workflow.",
      {
        "preset?": choice("Where the other limits come from; that of the deployment by default.", ["standard", "service", "flow"]),
        ...layer("step", "The limit of a task."),
        ...layer("flow", "The limit of a run."),
        ...layer("llm_call", "The limit of a call of a language model."),
        ...layer("tool", "The limit of a call of a tool."),
        "inherit_budget?": flag("Whether sub-workflows are limited to the time that is left of the run."),
        "warn_at?": { ...fraction("The fraction of a deadline after which a warning is written."), default: 0.8 },
      },
      oneSpelling("step", "flow", "llm_call", "tool"),
    ),
    "allow_exceed_hard?": flag("Whether the limits at the top of the workflow may exceed the hard limits of the preset."),
    "limits?": object("Bounds of one run.", {
      "tokens_total?": { ...count(1, 1_000_000, "Tokens that one attempt of a run may create."), default: 10_000 },
      "tokens_active?": { ...count(1, 1_000_000, "Tokens that may exist at the same time."), default: 1_000 },
      "loop_iterations?": { ...count(1, 1_000_000, "How often one transition of a cycle may fire on one path."), default: 1_000 },
    }),
    "trigger?": object("An event that starts runs.", {
      event: { type: "string", pattern: NAME, description: "The name of the event. Its payload is the input." },
      "cron?!": { type: "null", description: "Reserved: schedules are not supported yet." },
      "timezone?!": { description: "Reserved for schedules." },
    }),
    "on_no_match?": choice("What a node does whose transitions all do not match.", ["fail", "end"], "fail"),
    "clock?": choice("Whether the limit of a run counts the time in which every token stands in front of a person.", ["stops_at_gates", "runs"], "stops_at_gates"),
    "compensation?": object(
      "Which ends undo completed work, and for how long.",
      {
        "on?": statuses("The ends that compensate; all three by default.", ["failed", "timed_out", "cancelled"]),
        ...duration("timeout", "The longest that all compensations may take together; 10 min by default.", { never: false }),
      },
      oneSpelling("timeout"),
    ),
    "notify?": {
      type: "array",
      maxItems: 10,
      description: "Where events of its runs are posted.",
      items: object("A target.", {
        on: { type: "array", minItems: 1, uniqueItems: true, items: { type: "string", enum: EVENT_KINDS, description: "A kind." }, description: "The kinds of events that are posted." },
        url: string("An address with `http` or `https`. It is constant, but `${secret.NAME}` may stand in it."),
        "headers?": { type: "object", maxProperties: 20, additionalProperties: string("A text in which `${secret.NAME}` may stand."), description: "Headers of each request." },
        "secret?": string("Exactly one `${secret.NAME}`: the secret that signs."),
      }),
    },
    "on_end?": {
      type: "array",
      maxItems: 20,
      description: "Work that runs when a run is about to end.",
      items: object(
        "An end handler: exactly one of `task_id`, `action_id` and `workflow_id`.",
        { "on?": statuses("The ends that it is for; all by default.", ["completed", "failed", "timed_out", "cancelled"]), ...work },
        oneWork,
      ),
    },
  },
  oneSpelling("timeout"),
);

const compensate = object(
  "The work that undoes what a node did: exactly one of `task_id`, `action_id` and `workflow_id`.",
  { ...work, ...duration("timeout", "The longest that one attempt may take.") },
  [...oneWork, ...oneSpelling("timeout")],
);

/** The `$defs` of workflows. */
export const workflowParts = { workflow, node, gate, wait, transition, synchronization, compensate };
