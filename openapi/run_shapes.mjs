// Runs, tokens and gates as the API shows them: src/api/views.rs.
import { any, flag, list, millis, moment, object, oneOf, orNull, ref, text, whole } from "./shapes.mjs";

export const RUN_STATUSES = ["running", "waiting", "paused", "compensating", "completed", "failed", "timed_out", "cancelled"];
export const TOKEN_STATUSES = [
  "pending",
  "dispatched",
  "executing",
  "waiting_for_siblings",
  "waiting_for_subworkflow",
  "awaiting_human",
  "suspended",
  "completed",
  "failed",
  "timed_out",
  "cancelled",
];
export const CLASSES = [
  "network",
  "server_error",
  "provider_transient",
  "rate_limited",
  "timeout",
  "bad_request",
  "auth",
  "not_found",
  "validation",
  "assertion",
  "permanent",
  "breaker_open",
  "unknown",
];

const tokenId = (/** @type {string} */ description) => text(description, { pattern: "^t[0-9]+$" });
const classOf = () => oneOf("What kind of failure it is. It decides about retries and routes.", CLASSES);

const summary = {
  id: text("The id of the run."),
  workflow_id: text("The workflow that it runs."),
  version: whole("The version of the workflow.", { minimum: 1 }),
  status: ref("RunStatus"),
  error: orNull(ref("Failure", "Why it failed or timed out.")),
  started_at: moment("When it started."),
  ended_at: orNull(moment("When it ended.")),
  timeout_at: orNull(moment("When its limit passes. Null without a limit, and while its clock stands still at gates.")),
  attempt: whole("1, and one more for each restart.", { minimum: 1 }),
  tags: list("The tags of its workflow.", text("A tag.")),
};
const parent = object("The run and the token that called it.", {
  run_id: text("The id of the run that called it."),
  token_id: tokenId("The token that waits for it."),
});

/** Of timeout records, too. */
export const artifact = {
  name: text("The `ref` of the step."),
  complete: flag("False if the step was stopped or is under way, and if the text was cut."),
  bytes: whole("The size before any cut."),
  text: text("A string as it is, any other value as JSON."),
};
const progress = {
  at: moment("When it arrived."),
  step_ref: text("The step under way."),
  step_index: whole("Its position, from 0."),
  steps_total: whole("How many steps the task has."),
  attempt: whole("The call of that step, from 1."),
  partial: list("The results of finished steps, and the text that has arrived of the step under way.", ref("Artifact")),
};

/** @type {Record<string, import("./shapes.mjs").Schema>} */
export const runShapes = {
  RunStatus: oneOf(
    "`waiting`: every token waits for a person, a signal or a callback. `compensating`: the end is decided and work is undone. The last four are ends.",
    RUN_STATUSES,
  ),
  TokenStatus: oneOf("The last four are ends.", TOKEN_STATUSES),
  Failure: object("Why a run, a token or a step failed.", {
    code: text("A stable code. Codes of peers and scripts are free."),
    class: classOf(),
    message: text("For people. Cut at 4 KiB."),
    "node_id?": text("The node that failed."),
    "token_id?": tokenId("The token that failed."),
    "step_ref?": text("The step that failed."),
  }),
  Deadline: {
    ...object("A deadline of the run. It has a moment, or remaining milliseconds while its clock stands still.", {
      kind: oneOf("What it limits.", ["workflow", "compensation", "execution", "synchronization", "gate", "wait"]),
      "due_at?": moment("When it passes."),
      "remaining_ms?": millis("What is left of it."),
      "token_id?": tokenId("The token that it limits."),
      "node_id?": text("The node of that token, or of the join."),
      "gate_id?": text("The gate that it limits."),
    }),
    oneOf: [{ required: ["due_at"] }, { required: ["remaining_ms"] }],
  },
  TriggeredBy: object("The event that started the run.", {
    event: text("The name of the event."),
    key: text("The key of the event."),
  }),
  CompensatedToken: object("A token whose work was undone, or was to be undone.", {
    node_id: text("The node of the token."),
    token_id: tokenId("The token that had done the work."),
    "error?": ref("Failure", "Why its compensation failed."),
  }),
  Run: object("A run.", {
    ...summary,
    timeout_ms: orNull(millis("Its limit.")),
    duration_ms: millis("How long it took, or has taken so far."),
    input: any("What it was started with."),
    output: any("What it returned; null until it has completed."),
    context: object("What its nodes have written so far.", {
      state: any("The results of nodes, and what mappings wrote to `state`."),
      output: any("What mappings wrote to `output`."),
    }),
    deadlines: list("All deadlines that are running or stopped.", ref("Deadline")),
    counts: {
      type: "object",
      description: "How many tokens have each status. A status that no token has is left out.",
      propertyNames: { enum: TOKEN_STATUSES },
      additionalProperties: whole("The number of tokens.", { minimum: 1 }),
    },
    root_run_id: text("The topmost run that led to this one by calls."),
    "parent?": parent,
    "triggered_by?": ref("TriggeredBy"),
    "started_by?": text("The name of the caller that started it, the topmost run, or published the first event."),
    "paused_by?": list("Why its clocks stand still.", oneOf("A reason.", ["person", "workflow_timeout", "escalation", "parent"])),
    "gate?": ref("Gate", "The gate that the whole run waits at."),
    "reason?": text("The reason of its cancellation."),
    "ends_as?": ref("RunStatus", "How a compensating run will end."),
    "compensation?": object("What its compensation did.", {
      status: oneOf("Whether all work was undone.", ["completed", "partial", "failed"]),
      done: list("Tokens whose work was undone.", ref("CompensatedToken")),
      failed: list("Tokens whose work could not be undone.", ref("CompensatedToken")),
      "omitted?": whole("Tokens that are in neither list because there are too many."),
    }),
    "on_end?": list(
      "What its end handlers did, in their order.",
      object("How an end handler ended.", { status: ref("TokenStatus"), "error?": ref("Failure", "Why it failed.") }),
    ),
    "timeout_enforcement_latency_seconds?": {
      type: "object",
      description: "How late the timeouts of this run were enforced, by layer.",
      propertyNames: { enum: ["execution", "workflow", "synchronization", "gate"] },
      additionalProperties: object("How late the timeouts of a layer were.", {
        count: whole("The number of timeouts."),
        mean: { type: "number", description: "Their mean. Seconds." },
        max: { type: "number", description: "The latest one. Seconds." },
      }),
    },
  }),
  RunSummary: object("A run in a list. Long texts are cut.", {
    ...summary,
    duration_ms: orNull(millis("How long it took; null until it has ended.")),
    parent: orNull(parent),
    "triggered_by?": ref("TriggeredBy"),
    "truncated?": flag("Something was cut; `GET /v1/runs/{id}` has the whole run.", { const: true }),
  }),
  Step: object("What a step of a task did.", {
    ref: text("The name of the step."),
    status: oneOf("How it ended.", ["completed", "skipped", "failed", "timed_out"]),
    attempts: whole("How often it was tried."),
    duration_ms: millis("How long all attempts took together."),
    "retries?": list(
      "The failure of each attempt but the last one.",
      object("A failed attempt that was retried.", {
        class: classOf(),
        code: text("The code of the failure."),
        delay_ms: millis("The delay after it."),
        "after_ms?": millis("When it failed, from the beginning of the step."),
      }),
    ),
    "started_at?": moment("When it began."),
    "span_id?": text("Its span in the trace of the run.", { pattern: "^[0-9a-f]{16}$" }),
    "gen_ai?": object("The last call of a model or a tool.", {
      operation: oneOf("What was called.", ["chat", "execute_tool"]),
      "provider?": text("The provider of the model."),
      "request_model?": text("The model that was asked for."),
      "response_model?": text("The model that answered."),
      "input_tokens?": whole("Tokens of the prompt."),
      "output_tokens?": whole("Tokens of the answer."),
      "tool?": text("The tool."),
    }),
  }),
  Artifact: object("A part of a result.", artifact),
  Progress: object("How far the attempt of an executing token had come.", progress),
  Token: object("A visit of a node: one step of the path that a run took.", {
    id: tokenId("`t1`, `t2`, ... in the order of creation."),
    node_id: text("The node that it visits."),
    status: ref("TokenStatus"),
    epoch: whole("The number of its attempt; 0 before the first one."),
    retry_count: whole("How many attempts followed a timeout."),
    lane: orNull(oneOf("How its task was dispatched.", ["inline", "direct", "queue"])),
    branch: orNull(
      object("The branch of a fan-out that it belongs to.", {
        group: text("The sibling group of the fan-out."),
        instance: whole("The number of the fan-out in its run."),
        index: whole("The position of the branch, from 0."),
        total: whole("The number of branches."),
        item: any("The item of a `foreach`."),
        output: any("What the branch has returned so far."),
      }),
    ),
    parent_token_id: orNull(tokenId("The token that it follows.")),
    created_at: moment("When it was created."),
    dispatched_at: orNull(moment("When its task was sent to an executor.")),
    started_at: orNull(moment("When its task, gate or wait began.")),
    ended_at: orNull(moment("When its work ended.")),
    timeout_at: orNull(moment("When its limit passes. Null while its clock stands still.")),
    timeout_ms: orNull(millis("Its limit.")),
    timeout_reason: orNull(text("Where its limit comes from, if no document has it.")),
    reason: orNull(text("Why it is in its status, where the status alone does not say it.")),
    error: orNull(ref("Failure", "Why it failed.")),
    output: any("What its node returned."),
    steps: list("What the steps of its task did.", ref("Step")),
    "progress?": ref("Progress", "Of a token that is executing, if its executor sends it."),
    "compensation?": flag("It undoes the work of another token.", { const: true }),
    "compensates?": tokenId("The token whose work it undoes."),
    "on_end?": flag("It belongs to an end handler.", { const: true }),
  }),
  Decision: object("How a gate was decided.", {
    choice: text("One of the choices of the gate."),
    "input?": any("What the person entered."),
    "comment?": text("What the person remarked."),
    "by?": text("The name of the person."),
    at: moment("When it was decided."),
  }),
  Gate: object("A question to a person.", {
    id: text("The id of the gate in its run."),
    run_id: text("The run that asks."),
    node_id: orNull(text("The node that asks; null if the whole run does.")),
    token_id: orNull(tokenId("The token that waits; null if the whole run does.")),
    kind: oneOf("`node`: the workflow asks there. `workflow_timeout`: the limit of the run passed. `escalation`: something failed.", [
      "node",
      "workflow_timeout",
      "escalation",
    ]),
    prompt: any("What is asked."),
    choices: list("The possible decisions.", text("A choice.")),
    input_schema: any("The JSON Schema of the input of a decision; null if any is accepted."),
    opened_at: moment("When it was opened."),
    timeout_at: orNull(moment("When it decides by itself.")),
    reminded_at: orNull(moment("When a reminder was last sent.")),
    status: oneOf("`cancelled`: the token or the run ended before a decision.", ["open", "decided", "timed_out", "cancelled"]),
    decision: orNull(ref("Decision", "How it was decided.")),
    "truncated?": flag("Something was cut in this list; the message of a decision with a wrong choice has all choices.", { const: true }),
  }),
};
