// The export of a run, and the body and the answer of a what-if: src/replay.
import { any, body, flag, length, list, millis, object, oneOf, orNull, ref, text, whole } from "./shapes.mjs";

/** @typedef {import("./shapes.mjs").Schema} Schema */

/** @param {string} description @returns {Schema} */
const record = (description) => ({ type: "object", description });

const outcome = {
  status: ref("RunStatus"),
  duration_ms: millis("How long it took."),
  error: orNull(ref("Failure", "Why it failed.")),
  output: any("Its output."),
  tokens: list(
    "Its path. Times count from the start.",
    object("A token.", {
      token_id: text("The id of the token."),
      node_id: text("The node."),
      branch: orNull(whole("The number of its branch, in a fan-out.")),
      status: text("The status, as `/tokens` shows it."),
      retry_count: whole("How often it was retried after a timeout."),
      created_at_ms: orNull(millis("When it was created.")),
      started_at_ms: orNull(millis("When its last attempt began.")),
      ended_at_ms: orNull(millis("When it ended.")),
      timeout_ms: orNull(millis("Its limit.")),
    }),
  ),
  timeouts: list(
    "Its timeouts.",
    object("A timeout.", {
      scope: text("What timed out."),
      node_id: orNull(text("The node.")),
      token_id: orNull(text("The token.")),
      timeout_ms: orNull(millis("The limit.")),
      at_ms: orNull(millis("When it was enforced, after the start.")),
      final_action: text("What was done."),
    }),
  ),
};

/** @type {Record<string, Schema>} */
export const replayShapes = {
  RunExport: object("A run with its history, for tests, what-if and reports.", {
    format: { type: "string", description: "The shape of the export.", const: "curfew-export/1" },
    redacted: flag("The values were left out."),
    run: record("The run, as `GET /v1/runs/{run_id}` shows it."),
    start: record("How it was started: `request`, and `parent` for a called workflow."),
    snapshot: record("The workflow with its tasks, actions and called workflows, as the run has them."),
    "document?": record("The workflow as it was stored."),
    "versions?": record("Snapshots of versions that the run had before, by number."),
    settings: record("The settings of the deployment that count for time."),
    gates: list("Its gates, as `/v1/gates` shows them.", record("A gate.")),
    "signals?": record("Signals that no node has waited for, by name."),
    "tokens?": list("Its path, as `/tokens` shows it.", record("A token.")),
    "events?": list("Its history, as `/events` shows it.", record("An event.")),
    "timeouts?": list("Its timeouts, as `/timeouts` shows them.", record("A timeout.")),
  }),
  WhatIfBody: body("What is to be other than it was. Without anything the run is replayed unchanged.", {
    "changes?": {
      description: "JSON Patch (RFC 6902) on the document of the workflow.",
      type: ["array", "null"],
      maxItems: 1_000,
      items: body("An operation.", {
        op: oneOf("What to do.", ["add", "remove", "replace", "move", "copy", "test"]),
        path: text("A JSON pointer, like /nodes/2/timeout."),
        "from?": text("A JSON pointer: what `move` and `copy` take."),
        "value?": any("The value of `add`, `replace` and `test`."),
      }),
    },
    "version?": orNull(whole("Another stored version of the workflow.", { minimum: 1 })),
    "input?": any("Another input."),
    "durations?": {
      description: "Other durations of recorded calls and decisions.",
      type: ["array", "null"],
      maxItems: 1_000,
      items: body("All recorded answers of one node or one gate come after so long. Either `node` or `gate` is given.", {
        "node?": orNull(text("Calls, or called workflows, of this node.")),
        "gate?": orNull(text("Decisions at the gate of this node; `timeout`: at that of the run's limit.")),
        after: length("From the order to the answer, or from the opening of the gate to the decision."),
      }),
    },
  }),
  WhatIf: object("The run as it was, and as it would have been.", {
    recorded: object("The run as it was.", outcome),
    recorded_durations: list(
      "What took time in the recorded run, and can take another time.",
      object("A node, or a gate.", {
        "node?": text("The node whose calls, or called workflows, answered."),
        "gate?": text("The node of the gate that a person decided; `timeout`: that of the run's limit."),
        answers: whole("How many answers are recorded."),
        shortest_ms: millis("The shortest time until one."),
        longest_ms: millis("The longest time until one."),
      }),
    ),
    replayed: object("The run as it would have been. With `unknown` it stops there.", outcome),
    differences: list(
      "What is other than recorded.",
      object("A difference.", {
        what: oneOf("What differs.", ["status", "error", "output", "duration", "token", "retries", "timeout"]),
        "node_id?": orNull(text("The node.")),
        "token_id?": orNull(text("The token.")),
        recorded: any("As it was; null if it was not."),
        replayed: any("As it would have been; null if it would not."),
        message: text("A sentence."),
      }),
    ),
    unknown: list(
      "Calls that the recording cannot answer for. The replay stops at the first.",
      object("A call.", {
        node_id: text("The node."),
        token_id: text("The token of the replay."),
        epoch: whole("The number of the attempt."),
        at_ms: millis("When the answer would matter, after the start."),
        message: text("Why it is not known."),
      }),
    ),
  }),
};
