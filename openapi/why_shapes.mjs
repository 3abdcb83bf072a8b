// Why a deadline passed: src/why. The field `why` of a single record of a timeout.
import { flag, list, millis, moment, object, oneOf, orNull, text, whole } from "./shapes.mjs";

const tokenId = (/** @type {string} */ description) => text(description, { pattern: "^t[0-9]+$" });
const leftOut = whole("How many more there are.");

/** @type {Record<string, import("./shapes.mjs").Schema>} */
export const whyShapes = {
  TimeoutWhy: object("Why a deadline passed, derived from the history of the run when it is asked for. What the history cannot say is null.", {
    limit: object("The limit that passed.", {
      layer: oneOf("What it is a limit of.", ["workflow", "execution", "call", "join", "gate", "wait", "callback", "heartbeat"]),
      source: oneOf("Where its length comes from.", [
        "node",
        "task",
        "step",
        "action",
        "gate",
        "wait",
        "join",
        "workflow",
        "preset",
        "adaptive",
        "start",
        "parent_budget",
        "calling_node",
        "join_default",
        "gate_default",
        "deployment",
        "unknown",
      ]),
      timeout_ms: orNull(millis("Its length.")),
      pointer: orNull(text("Where it is written: in the workflow's document, or in `document`.")),
      document: orNull(
        object("The task or action that it is written in.", { kind: oneOf("Its kind.", ["tasks", "actions"]), id: text("Its id.") }),
      ),
      preset: orNull(oneOf("The preset whose default it is.", ["standard", "service", "flow"])),
      reason: orNull(text("How its length was computed, or why it is not known.")),
      "extended_ms?": millis("How much of it are extensions."),
    }),
    outer: orNull(
      object("The limit around it.", {
        layer: oneOf("Whose limit it is.", ["workflow", "parent"]),
        run_id: text("The run that has it."),
        token_id: orNull(tokenId("The token of the parent that waited for this run.")),
        passed_first: flag("The outer limit is the one that passed."),
        left_ms: orNull(millis("What was left of it; null where it is not known or there is none.")),
      }),
    ),
    used: object("What used the time. Which fields it has depends on the layer.", {
      "elapsed_ms?": millis("How much time counted."),
      "stopped_ms?": orNull(millis("How long the clock stood still: in pauses, or in front of a person.")),
      "queued_ms?": millis("Before an executor had the attempts."),
      "waited_ms?": millis("In delays before retries of calls and of attempts."),
      "attempts?": list(
        "The attempts up to the timeout, the last 100.",
        object("An attempt.", {
          epoch: whole("Its number."),
          dispatched_at: moment("When it was sent."),
          queued_ms: orNull(millis("Until an executor had it; null where only the last claim is known.")),
          duration_ms: orNull(millis("How long the executor had it.")),
          ended: oneOf("How it ended.", ["completed", "failed", "timed_out", "silent", "repeated", "cut_off", "running"]),
          "child_run_id?": text("The run of the sub-workflow."),
        }),
      ),
      "attempts_left_out?": leftOut,
      "waits?": list(
        "The waits between attempts, the last 100.",
        object("A wait.", {
          began_at: moment("When it began."),
          duration_ms: millis("How long it was."),
          why: oneOf("What was waited for.", ["to_begin", "retry_delay"]),
        }),
      ),
      "waits_left_out?": leftOut,
      "calls?": list(
        "The steps of the last attempt, as its executor reported them.",
        object("The calls of a step.", {
          step_ref: text("The step."),
          status: oneOf("How it ended.", ["completed", "skipped", "failed", "timed_out"]),
          calls: whole("How many calls it made."),
          duration_ms: millis("How long they took together."),
          backoff_ms: millis("How much of that were waits between calls."),
        }),
      ),
      "gate_id?": orNull(text("The gate.")),
      "opened_at?": orNull(moment("When the gate opened.")),
      "reminders?": orNull(whole("How many reminders it sent.")),
      "first_arrival_at?": moment("When the first branch arrived, which began the wait."),
      "branches?": whole("How many branches the fan-out had."),
      "arrived?": whole("How many had arrived."),
      "needed?": whole("How many more the join needed."),
      "missing?": list(
        "The branches that had not arrived, 100 at most.",
        object("A branch.", {
          index: whole("Its number."),
          token_id: orNull(tokenId("Its last token at that time.")),
          node_id: orNull(text("Where that token was.")),
          came_at: orNull(moment("When it arrived after all, or brought its result.")),
        }),
      ),
      "missing_left_out?": leftOut,
      "critical_way?": list(
        "The tokens that followed each other up to the one that was at work longest, the last 100.",
        object("A token of the way.", {
          token_id: tokenId("Its id."),
          node_id: text("Its node."),
          duration_ms: millis("How much of the run's time it took."),
        }),
      ),
      "critical_way_left_out?": leftOut,
      "nodes?": list(
        "The same by node, the longest first, 100 at most.",
        object("A node of the way.", { node_id: text("The node."), duration_ms: millis("How much of the run's time it took.") }),
      ),
      "at_work?": { type: ["object", "null"], description: "How many tokens were at work at which node.", additionalProperties: whole("Tokens.") },
    }),
    usual: object("What the node usually takes.", {
      workflow_id: text("The workflow."),
      node_id: orNull(text("The node: of the timeout, or the one that was at work when the run's limit passed.")),
      samples: whole("How many durations are known."),
      p50_ms: orNull(millis("Half of them were this long at most.")),
      p99_ms: orNull(millis("99 of 100 of them were this long at most.")),
      source: orNull(
        oneOf("`latencies`: exact, of the last runs of a node with an adaptive limit. `metrics`: upper bounds of buckets.", ["latencies", "metrics"]),
      ),
      reason: orNull(text("Why there are none, or what they leave out.")),
    }),
    smallest_limit_ms: orNull(millis("The smallest limit that would have held; null where the history does not say.")),
    more_than_ms: orNull(millis("It is longer than this.")),
    smallest_limit_reason: text("How that is known, or why it is not."),
    change: orNull(
      list(
        "The JSON Patch that sets the smallest limit in the run's workflow document. It has several operations where all transitions of a join have to say the same.",
        object("An operation.", {
          op: oneOf("What it does.", ["add", "replace"]),
          path: text("A pointer into the document."),
          value: { type: ["integer", "string", "object"], description: "The limit, in the form that the place has: milliseconds, a duration, or the object that holds it." },
        }),
      ),
    ),
  }),
};
