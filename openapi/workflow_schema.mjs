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
  headerNames,
  headerValue,
  id,
  jsonSchema,
  NAME,
  object,
  ONLY_EXPRESSION,
  oneSpelling,
  part,
  schemaField,
  string,
  TARGET,
  targets,
  template,
  url,
  version,
  when,
  without,
} from "./document_parts.mjs";
import { DISPATCH, DISPATCHES } from "./task_schema.mjs";

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

/** What a node, a compensation and an end handler may run. @param {string} input the description of their input */
const work = (input) => ({
  "task_id?": id("The id of the task to run, of the workflow document or of the catalogue."),
  "task_version?": version("The version of the task; the newest when the run starts by default. Only with `task_id`."),
  "action_id?": id("The id of the action to run as a task of one step, of the workflow document or of the catalogue."),
  "action_version?": version("The version of the action; the newest when the run starts by default. Only with `action_id`."),
  "workflow_id?": id("The id of the workflow to run as a sub-workflow, in a run of its own."),
  "workflow_version?": version("The version of the workflow; the newest when the run starts by default. Only with `workflow_id`."),
  "on_failure?": choice(
    "Only with `workflow_id`: what follows if the sub-workflow fails, times out or is cancelled. `propagate`: the work fails with its error. `catch`: the work completes with `{status, error, run_id}`.",
    ["propagate", "catch"],
    "propagate",
  ),
  "input_mapping?": template(input),
});
const oneWork = [{ anyOf: WORK.map(has) }, ...atMostOne(WORK), { anyOf: [has("workflow_id"), without(["on_failure"])] }];

const VERSIONS = ["task_version", "action_version", "workflow_version", "on_failure"];
/** The fields that mean nothing on a node without work. */
const ONLY_WORK = [...VERSIONS, "input_mapping", "on_timeout", "max_retries", "dispatch", "escalate_on", "compensate"];
/** Of notifications: src/definition/notify.rs. */
const FIXED_HEADERS = [
  ...["connection", "content-length", "content-type", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["webhook-id", "webhook-signature", "webhook-timestamp"],
];
const notAdaptive = { properties: { timeout: { not: { const: "adaptive" } } } };

const NO_MATCH =
  "What happens to a token whose node has transitions, none of which matches. `fail`: it fails with `no_transition` and takes the node's failure transitions. `end`: its path ends, as after a node without transitions.";
const timeout = duration(
  "timeout",
  "The longest that one attempt may take, or how long a gate waits. By default the limit of the task, of the action or of the preset applies, and a gate waits without a limit.",
  { or: [{ const: "adaptive" }], more: 'With "adaptive" it is learnt from the durations of the last runs.' },
);

const node = object(
  "A node: what happens when a token comes there. It has exactly one of `task_id`, `action_id`, `workflow_id`, `gate` and `wait`, or none of them.",
  {
    id: id("The id of the node, unique in the workflow. Expressions read its result as `state.<id>`."),
    ...forPeople,
    ...work("The input of the work: any JSON in which strings may hold `${...}`, over `input`, `state` and `output`; the input of the run by default."),
    "gate?": part("gate"),
    "wait?": part("wait"),
    "output_mapping?": targets(
      "Where the result goes, as `{target: value}` with the result as `result`. By default it goes to `state.<node id>`, in a branch of a fan-out to `_branch.output`; `{}` drops it.",
    ),
    ...timeout,
    "on_timeout?": choice(
      "What follows an attempt that exceeds `timeout`. `fail`: the node takes its transitions for timeouts. `retry`: another attempt begins, `max_retries` times at most. By default `fail`, or what the only action says where its call has no more time than the attempt.",
      ["fail", "retry"],
    ),
    "max_retries?": { ...count(0, 100, "How many further attempts may follow attempts that timed out, where `on_timeout` is `retry`."), default: 3 },
    "allow_exceed_hard?": flag("Whether the limits of this node and of what it runs may exceed the hard limits of the preset."),
    "dispatch?": choice(`${DISPATCH} That of the task applies by default.`, DISPATCHES),
    "escalate_on?": {
      type: "array",
      items: { enum: CLASSES },
      description: "Classes of failures after which a person decides at a gate (`retry`, `skip` or `fail`) instead of the node failing; those of the preset by default.",
    },
    "on_no_match?": choice(`${NO_MATCH} That of the workflow applies by default.`, ["fail", "end"]),
    "compensate?": part("compensate"),
  },
  [
    ...atMostOne(FORMS),
    ...oneSpelling("timeout"),
    when(
      { ...has("gate"), properties: { gate: { type: "object", anyOf: [{ required: ["timeout"] }, { required: ["timeout_ms"] }] } } },
      without(["timeout", "timeout_ms"]),
    ),
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
  "A gate: the token waits until a person decides. The result is `{choice, input, comment, by}`.",
  {
    "prompt?": template("What the person is asked: any JSON in which strings may hold `${...}`."),
    "choices?": {
      type: "array",
      minItems: 1,
      uniqueItems: true,
      items: { type: "string", minLength: 1, maxLength: 64 },
      default: ["approve", "reject"],
      description: "The decisions to choose from, each of 1 to 64 bytes.",
    },
    "input_schema?": jsonSchema("A JSON Schema, draft 2020-12, that the `input` of a decision must fit."),
    ...duration("timeout", "How long the gate waits for a decision. By default the `timeout` of the node applies, and without one there is no limit."),
    "on_timeout?": choice(
      "What happens without a decision within `timeout`. `fail`: the node takes its transitions for timeouts. `approve` and `reject`: the gate is decided so, and must have that choice. `cancel_all`: the run ends as `timed_out`.",
      ["fail", "approve", "reject", "cancel_all"],
      "fail",
    ),
    "remind_at?": {
      type: "array",
      items: fraction("A fraction of `timeout`."),
      default: [0.75],
      description: "When reminders are due, as fractions of `timeout` between 0 and 1: after 0.75 three quarters of the time have passed.",
    },
    "four_eyes?": flag("With `true` the caller that started the run may not decide."),
  },
  [...oneSpelling("timeout"), needsChoice("approve"), needsChoice("reject")],
);

const computed = { type: "string", pattern: ONLY_EXPRESSION };
/** ISO 8601 with its offset, since 1970: src/base/time.rs. */
const MOMENT = `^(19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$|${EXPRESSION}`;
const wait = object(
  "A wait for a moment or a signal: exactly one of `sleep`, `until` and `signal`.",
  {
    ...duration("sleep", "How long to wait, or one `${...}` that gives a duration or milliseconds when a token comes here.", { never: false, or: [computed], orMillis: [computed] }),
    "until?": { description: "The moment at which to go on: Unix milliseconds, ISO 8601 with its offset such as \"2026-11-16T09:30:00Z\", or a `${...}` that gives one.", anyOf: [{ type: "string", pattern: MOMENT }, count(0, 253_402_300_799_999, "Unix milliseconds.")] },
    "signal?": { type: "string", pattern: NAME, description: "The name of the signal to wait for. The result is the body that was sent with it." },
    ...duration("timeout", "Only with `signal`: the longest to wait for it; no limit by default."),
    "on_timeout?": choice("Only with `signal`: what happens if it does not come within `timeout`. `fail`: the node takes its transitions for timeouts. `continue`: the node completes with the result null.", ["fail", "continue"], "fail"),
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
    sibling_group: string("The group of branches to join: the `sibling_group` of the transitions that create them, or the id of the one transition that fans out."),
    "strategy?": {
      description: "How many branches must arrive. `all`: every one. `any`: the first one is enough. `{\"m_of_n\": 3}`: three of them.",
      anyOf: [{ enum: ["all", "any"] }, object("A number of the branches.", { m_of_n: count(1, 1_000, "How many branches must arrive.") })],
      default: "all",
    },
    ...duration("timeout", "How long to wait for the other branches, from the first arrival. By default it is derived from the limits in the branches, 30 min at most; null is no limit."),
    "on_timeout?": choice(
      "What happens if too few branches have arrived within `timeout`. `proceed_with_available`: the join goes on with those that completed, and fails if none did. `fail`: all branches time out and the join fails.",
      ["proceed_with_available", "fail"],
      "fail",
    ),
    "on_branch_failure?": choice(
      "Only with the strategy `all`: what happens if a branch ended without completing. `proceed_with_available`: the join goes on with the others once all have arrived or ended. `fail`: the join fails.",
      ["proceed_with_available", "fail"],
      "fail",
    ),
    "on_early_complete?": choice(
      "What happens to branches that still run when the join goes on. `abandon`: they run on and their results are dropped. `cancel`: their calls are aborted. `allow_late_merge`: they run on and are merged when they arrive.",
      ["abandon", "cancel", "allow_late_merge"],
      "abandon",
    ),
    "merge?": object("How the results of the branches are put together, and where they go. Without it they are not merged.", {
      "source?": expression("What is taken of each branch: an expression over `_branch` (`index`, `total`, `item`, `output`), without `${}`; `_branch.output` by default."),
      target: { type: "string", pattern: TARGET, description: "Where the merged results go: `state.<name>`, `output.<name>` or, in a nested join, `_branch.output`." },
      "strategy?": choice(
        "What the target becomes. `append`: a list of the results in the order of branches, after what it already holds. `concat`: the same, with results that are lists flattened by one level. `merge_object`: an object with the fields of all results, later branches winning. `keyed_by_branch`: an object with the results under \"0\", \"1\" and so on. `last_wins`: the result of the branch that arrived last.",
        ["append", "concat", "merge_object", "keyed_by_branch", "last_wins"],
        "append",
      ),
    }),
  },
  [
    ...oneSpelling("timeout"),
    when({ ...has("strategy"), properties: { strategy: { not: { enum: [null, "all"] } } } }, without(["on_branch_failure"])),
  ],
);

const transition = object(
  "A transition from one node to another.",
  {
    "id?": id("The id of the transition, unique in the workflow; `t1`, `t2`, ... by position by default."),
    from_node_id: string("The id of the node that the transition leaves."),
    to_node_id: string("The id of the node that the transition leads to."),
    "on?": choice(
      "How the work of the node must have ended for this transition to be taken. `success`: it completed. `failure`: it failed, with all retries spent. `timeout`: it exceeded its limit.",
      ["success", "failure", "timeout"],
      "success",
    ),
    "priority?": {
      ...count(-1_000_000, 1_000_000, "Transitions with the lowest number are tried first. All matching ones of that number are taken, and later numbers are not looked at."),
      default: 0,
    },
    "condition?": expression("An expression that must be true for the transition to be taken, without `${}`; always true by default."),
    "loop_config?": object("How often the transition may be taken on one path. It counts only where the transition is part of a cycle.", {
      max_iterations: count(1, 1_000_000, "The most times that the transition may be taken on one path. Then it no longer matches."),
    }),
    "spawn_count?": count(1, 1_000, "How many tokens the transition creates instead of one, which is a fan-out."),
    "foreach?": object("The transition creates one token for each item of a list, which is a fan-out.", {
      collection: expression("An expression that gives a list of at most 1 000 items, without `${}`."),
      "item_var?": { type: "string", pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$", not: { enum: NO_VARIABLES }, default: "item", description: "The name of the item in expressions of the branch." },
    }),
    "sibling_group?": id("The name of the group that the created tokens belong to, for the join; by default the id of the transition, if it fans out."),
    "synchronization?": part("synchronization"),
  },
  atMostOne(["foreach", "spawn_count"]),
);

const statuses = (/** @type {string} */ description, /** @type {string[]} */ names) => ({ type: "array", minItems: 1, items: { enum: names }, description });
const layer = (/** @type {string} */ name, /** @type {string} */ description) => duration(name, description, { or: [{ type: "integer", minimum: 1, maximum: 1_000_000_000_000_000 }] });

const workflow = object(
  "A workflow: a graph of nodes and transitions.",
  {
    id: id("The id of the workflow. It may be left out in a PUT, where the path names it."),
    ...schemaField,
    ...forPeople,
    "tags?": { type: "array", maxItems: 20, items: { type: "string", minLength: 1, maxLength: 64 }, description: "Up to 20 tags of 1 to 64 bytes. Runs can be listed by the tags of their workflow." },
    nodes: { type: "array", minItems: 1, maxItems: 500, items: part("node"), description: "The nodes of the graph: what the workflow does." },
    "transitions?": { type: "array", maxItems: 2_000, items: part("transition"), description: "The transitions of the graph: which node follows which." },
    "initial_node_id?": string("The id of the node at which a run begins; the first one of `nodes` by default."),
    "tasks?": { type: "array", items: part("task"), description: "Tasks that nodes of this workflow name, written here. They are used before tasks of the catalogue with the same id." },
    "actions?": { type: "array", items: part("action"), description: "Actions that nodes and steps of this workflow name, written here. They are used before actions of the catalogue with the same id." },
    "input_schema?": jsonSchema("A JSON Schema, draft 2020-12, that the input of a run must fit. A start with another input is refused."),
    "output_schema?": jsonSchema("A JSON Schema, draft 2020-12, that the output of a run must fit."),
    "output_mapping?": template("The output of a run: any JSON in which strings may hold `${...}` over `input`, `state` and `output`; `output` of the context by default."),
    ...duration("timeout", "The longest that a run may take; that of the preset by default, and null is no limit."),
    "on_timeout?": choice(
      "What happens to a run that exceeds `timeout`. `human_gate`: the run pauses until a person extends or ends it, see `gate`. `cancel_all`: its calls are aborted and it ends as `timed_out`. `fail`: the same, and it ends as `failed`.",
      ["human_gate", "cancel_all", "fail"],
      "human_gate",
    ),
    "gate?": object(
      "How long a run that has exceeded `timeout` waits for a person, where `on_timeout` is `human_gate`. It also applies to the gates of `escalate_on`.",
      {
        ...duration("timeout", "The longest to wait for a decision; 7 days by default.", { never: false }),
        "on_timeout?": choice("How the run ends without a decision in time. `cancel_all`: as `timed_out`. `fail`: as `failed`.", ["cancel_all", "fail"], "cancel_all"),
      },
      oneSpelling("timeout"),
    ),
    "timeouts?": object(
      "The limits of this workflow's runs, tasks and calls that say none themselves.",
      {
        "preset?": choice("The set of defaults and hard limits that applies where nothing is written: `standard`, `service` or `flow`. That of the deployment by default.", ["standard", "service", "flow"]),
        ...layer("step", "The longest that one attempt at a task may take."),
        ...layer("flow", "The longest that a run may take."),
        ...layer("llm_call", "The longest that one call of a language model (`llm_call`) may take."),
        ...layer("tool", "The longest that one call of another service (`http_request`, `service_call`, `mcp_tool`, `shell`) may take."),
        "inherit_budget?": flag("With `true` a sub-workflow may take at most the time that is left of this run."),
        "warn_at?": { ...fraction("The fraction of a deadline, between 0 and 1, after which a `deadline_warning` is written to the events of the run."), default: 0.8 },
      },
      oneSpelling("step", "flow", "llm_call", "tool"),
    ),
    "allow_exceed_hard?": flag("Whether `timeout` and `timeouts` of the workflow may exceed the hard limits of the preset."),
    "limits?": object("Bounds of one run. A run that exceeds one of them fails with `limit_exceeded`.", {
      "tokens_total?": { ...count(1, 1_000_000, "How many tokens one attempt of a run may create."), default: 10_000 },
      "tokens_active?": { ...count(1, 1_000_000, "How many tokens may exist at the same time."), default: 1_000 },
      "loop_iterations?": { ...count(1, 1_000_000, "How often one transition of a cycle may be taken on one path, where it has no `loop_config`."), default: 1_000 },
    }),
    "trigger?": object("An event that starts runs of the newest version of this workflow.", {
      event: { type: "string", pattern: NAME, description: "The name of the event. Its payload is the input of the run." },
      "cron?!": { type: "null", description: "Reserved: schedules are not supported yet." },
      "timezone?!": { type: "null", description: "Reserved for schedules, which are not supported yet." },
    }),
    "on_no_match?": choice(NO_MATCH, ["fail", "end"], "fail"),
    "clock?": choice("Whether `timeout` counts the time in which every token stands at a gate. `stops_at_gates`: it does not. `runs`: it does.", ["stops_at_gates", "runs"], "stops_at_gates"),
    "compensation?": object(
      "Which ends of a run undo its completed work, by the `compensate` of its nodes, and how long that may take.",
      {
        "on?": statuses("The ends after which completed work is undone; all three by default.", ["failed", "timed_out", "cancelled"]),
        ...duration("timeout", "The longest that all compensations of a run may take together; 10 min by default. The end handlers of `on_end` have the same time.", { never: false }),
      },
      oneSpelling("timeout"),
    ),
    "notify?": {
      type: "array",
      minItems: 1,
      maxItems: 10,
      description: "The addresses to which events of the runs are posted.",
      items: object("An address, and the events that are posted to it.", {
        on: { type: "array", minItems: 1, uniqueItems: true, items: { type: "string", enum: EVENT_KINDS, description: "A kind of event." }, description: "The kinds of events that are posted to the address." },
        url: url("The address, `http` or `https`. Only `${secret.NAME}` may stand in it, no other expression."),
        "headers?": {
          type: "object",
          maxProperties: 20,
          propertyNames: headerNames(FIXED_HEADERS),
          additionalProperties: { ...string("The value of the header, in which `${secret.NAME}` may stand."), ...headerValue },
          description: "Further headers of each request.",
        },
        "secret?": { type: "string", pattern: "^\\$\\{[^{}]*secret[^{}]*\\}$", description: "The secret with which each request is signed: exactly one `${secret.NAME}`." },
      }),
    },
    "on_end?": {
      type: "array",
      maxItems: 20,
      description: "Work that runs, one handler after the other, when a run is about to end. Its failure does not change the end.",
      items: object(
        "An end handler: exactly one of `task_id`, `action_id` and `workflow_id`.",
        {
          "on?": statuses("The ends for which the handler runs; all by default.", ["completed", "failed", "timed_out", "cancelled"]),
          ...work("The input of the work: any JSON in which strings may hold `${...}`, over `input`, `state`, `output` and `run`; by default `run`, which also has `status`, `error` and `output` here."),
        },
        oneWork,
      ),
    },
  },
  oneSpelling("timeout"),
);

const compensate = object(
  "The work that undoes what a node did: exactly one of `task_id`, `action_id` and `workflow_id`.",
  {
    ...work("The input of the work: any JSON in which strings may hold `${...}`, over `result`, `input`, `state` and `run`; by default `result`, which is what the node returned."),
    ...duration("timeout", "The longest that one attempt at the compensation may take; by default the limit of the task, of the action or of the preset applies."),
  },
  [...oneWork, ...oneSpelling("timeout")],
);

/** The `$defs` of workflows. */
export const workflowParts = { workflow, node, gate, wait, transition, synchronization, compensate };
