// The body and the answer of a simulation: src/simulate/body.rs and answer.rs.
import { any, body, flag, length, list, millis, NAME, object, oneOf, orNull, ref, text, whole } from "./shapes.mjs";
import { CALLER_NAME } from "./body_shapes.mjs";
import { CLASSES } from "./run_shapes.mjs";

/** @typedef {import("./shapes.mjs").Schema} Schema */

/** @param {string} description */
const odds = (description) => whole(`${description} In percent.`, { maximum: 100 });

const failure = {
  description: "The call fails: a class, or a class with more.",
  anyOf: [
    oneOf("A class.", CLASSES),
    body("A failure.", {
      class: oneOf("What kind of failure it is.", CLASSES),
      "code?": text("The code; by default the one that an HTTP peer would cause."),
      "message?": text("The message."),
      "retry_after?": length("What the peer asks for by `Retry-After`."),
    }),
  ],
};

const mock = {
  ...object("What calls are answered with. The first mock that fits and is not used up counts.", {
    "node?": orNull(text("Calls of this node; for a node that calls a workflow, the workflow itself.")),
    "action?": orNull(text("Calls of this action.")),
    "step?": orNull(text("Calls of the step with this `ref`.")),
    "after?": { ...length("How long the call takes."), type: ["integer", "number", "string", "null"] },
    "result?": any("What the call returns: `result` of its step."),
    "fail?": { description: failure.description, anyOf: [...failure.anyOf, { type: "null" }] },
    "hang?": orNull(flag("The call never ends.")),
    "partial?": orNull(text("The text that has arrived when the call fails or is cut.")),
    "times?": orNull(whole("How many calls it answers; any number by default.")),
  }),
};

const document = () => ({ type: "object", description: "A document.", required: ["id"] });

const faults = body("What goes wrong around the run. Without any odds the seed draws them.", {
  "events?": whole("Faults happen in so many first events; 150 by default.", { maximum: 10_000 }),
  "crash_before_commit?": odds("The object crashes after a decision and before its commit."),
  "crash_after_commit?": odds("The object crashes after a commit, before or while its commands are performed."),
  "eviction?": odds("The object leaves memory between two events."),
  "lost?": odds("The connection to an executor breaks."),
  "frozen?": odds("An executor stops without a sign, while its connection stays open."),
  "never_answered?": odds("An executor works on and never reports."),
  "duplicated?": odds("A message comes twice."),
  "slow?": odds("A message takes minutes."),
  "late_alarm?": odds("An alarm rings late."),
  "early_alarm?": odds("An alarm rings early."),
  "repeated_alarm?": odds("An alarm rings twice."),
  "message_lost?": odds("A message between runs is lost, or its response."),
  "queue_message_lost?": odds("A message of the task queue is lost."),
  "claim_response_lost?": odds("The response to a claim is lost."),
  "consumer_stops?": odds("A consumer of the queue stops after its claim."),
  "no_heartbeats?": odds("A consumer of the queue sends no heartbeats."),
  "commit_fails?": odds("The database refuses a commit."),
});

const call = object("A call that a task made, a workflow that a mock answered for, or an event that was emitted.", {
  at_ms: millis("When it began, after the start."),
  duration_ms: orNull(millis("How long it took; null while it is open.")),
  outcome: oneOf("How it ended.", ["open", "result", "failed", "timed_out", "aborted"]),
  "class?": oneOf("The class of its failure.", CLASSES),
  run_id: text("The run that made it."),
  node_id: text("The node; empty for an emitted event."),
  token_id: text("The token."),
  epoch: whole("The attempt; 0 for an emitted event."),
  kind: text("The kind of the action, `workflow` or `emit_event`."),
  "step?": text("The `ref` of the step."),
  "action?": orNull(text("The id of the action.")),
  "idempotency_key?": text("What the call carries as `Idempotency-Key`."),
  "child_run_id?": text("The run that a mock stands for."),
  "event?": text("The name of the emitted event."),
  "key?": text("The key of the emitted event."),
  request: any("What is sent: method, URL and body without headers, or what the kind has instead."),
});

const wait = object("What an open run waits for.", {
  for: oneOf("What kind of thing.", ["decision", "signal", "callback", "call", "time"]),
  "run_id?": text("The run."),
  "node_id?": orNull(text("The node.")),
  "gate_id?": text("The gate."),
  "choices?": list("The choices of the gate.", text("A choice.")),
  "signal?": text("The name of the signal."),
  "step?": orNull(text("The step of the call.")),
  "kind?": orNull(text("The kind of the call.")),
  "add?": any("The entry of `people` or `signals` that would move it on."),
});

const view = {
  run: ref("Run"),
  tokens: list("Its path, as `/tokens` shows it.", ref("Token")),
  events: list("Its history, as `/events` shows it.", ref("Event")),
  timeouts: list("Its timeouts, as `/timeouts` shows them.", ref("Timeout")),
};

/** @type {Record<string, Schema>} */
export const simulationShapes = {
  SimulateBody: {
    ...body("A workflow, and what the world around it answers. Exactly one of `workflow` and `workflow_id` is needed.", {
      "workflow?": { type: "object", description: "The document of the workflow." },
      "workflow_id?": text("A stored workflow.", { pattern: "^[a-z0-9_-]{1,64}$" }),
      "version?": whole("A version of the stored workflow; the newest by default.", { minimum: 1 }),
      "documents?": body("Documents that the workflow refers to. They come before those of the catalogue.", {
        "workflows?": list("Workflows.", document()),
        "tasks?": list("Tasks.", document()),
        "actions?": list("Actions.", document()),
      }),
      "input?": any("The input of the run; `{}` by default."),
      "by?": text("The name of the caller that starts the run, which a gate with `four_eyes` compares.", CALLER_NAME),
      "timeout?": text("The longest that the run may take: 30s, 2m, 1h30m."),
      "timeout_ms?": whole("The same in milliseconds. Only one of both may be given.", { minimum: 1 }),
      "start_at?": { description: "When the run starts: Unix milliseconds, or ISO 8601; 1 January 2026 by default.", type: ["integer", "string"], minimum: 0 },
      "mocks?": list("What calls are answered with.", mock, { maxItems: 1_000 }),
      "people?": list(
        "Decisions at gates, each once.",
        body("A decision.", {
          gate: text("The node of the gate, or `timeout` for the gate of the run's limit."),
          "after?": length("After the gate has opened."),
          choice: text("What is chosen."),
          "input?": any("What is entered."),
          "by?": text("Who decides.", CALLER_NAME),
        }),
        { maxItems: 1_000 },
      ),
      "signals?": list(
        "Signals to the run.",
        body("A signal.", {
          name: text("The name of the signal.", { pattern: NAME }),
          "at?": length("After the start."),
          "payload?": any("What it carries."),
        }),
        { maxItems: 1_000 },
      ),
      "seed?": whole("What random numbers follow from: jitter and faults. 0 by default."),
      "faults?": faults,
      "queue?": flag("Tasks go by the queue, as with `CURFEW_QUEUE`; by default as the deployment does it."),
      "until?": length("The simulation stops so long after the start."),
    }),
  },
  Simulation: object("The run at its end, or where the simulation stopped.", {
    ...view,
    "children?": list("The runs that it called.", object("A run that was called.", view)),
    calls: list("The calls that were made, in order.", call),
    virtual_ms: millis("How long the run took."),
    dollars: { type: "number", description: "What the run would cost on Cloudflare, beyond the included amounts, without the price of its peers.", minimum: 0 },
    "waits_for?": list("What an open run waits for that never came.", wait),
    "violations?": list("With `faults`: what must hold for any run and did not. Empty, unless Curfew has a bug.", text("A sentence.")),
    "faults?": list("With `faults`: what went wrong.", object("A fault.", { at_ms: millis("When, after the start."), fault: text("Which one.") })),
  }),
};
