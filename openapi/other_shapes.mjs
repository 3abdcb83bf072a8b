// Errors, documents, batches, bulk operations, events and breakers.
import { any, flag, list, moment, object, oneOf, orNull, ref, text, whole } from "./shapes.mjs";
import { CODES } from "./codes.mjs";
import { EVENT_KINDS } from "./history_shapes.mjs";

const codes = [...new Set(Object.keys(CODES).map((code) => code.split(" ")[1]))].sort();

/** @type {Record<string, import("./shapes.mjs").Schema>} */
export const otherShapes = {
  Problem: object("A problem of a document or a body.", {
    pointer: text("Where it is: a JSON pointer."),
    code: text("A stable code."),
    message: text("What is wrong and what to do."),
    "severity?": oneOf("A document with an error is refused; one with warnings only is stored.", ["error", "warning"]),
  }),
  ErrorBody: object("Why a request was refused.", {
    code: text("A stable code.", { enum: codes }),
    message: text("What is wrong and what to do."),
    "pointer?": text("Where in the body it is: a JSON pointer."),
    "details?": {
      description: "More about it; what it is depends on the code.",
      anyOf: [
        list("`invalid_document`, `invalid_request` and `invalid_input`: every problem, 100 at most for a body.", ref("Problem")),
        list(
          "`version_does_not_fit`: the places that do not fit.",
          object("A place that does not fit.", {
            node_id: orNull(text("The node.")),
            "token_id?": text("The token."),
            reason: text("What does not fit."),
          }),
        ),
        object("`no_mock`: what to add.", { mock: any("An entry of `mocks`.") }),
        object("`invalid_request` of a query: what is known.", {
          parameter: text("The parameter."),
          known: list("The known names.", text("A name.")),
          nearest: orNull(text("The known name that is most like it.")),
        }),
        object("`decision_needed`: the gate to decide.", { gate_id: orNull(text("Its id.")) }),
        object("`gate_closed`: how it was closed.", { status: text("The status of the gate."), decision: orNull(ref("Decision", "How it was decided.")) }),
        object("`event_limit`: which event, and the limit.", {
          root_event: object("The first event of the chain.", { event: text("Its name."), key: text("Its key.") }),
          limit: whole("How many runs an event may start."),
        }),
      ],
    },
  }),
  Error: object("The answer to a request that was refused.", { error: ref("ErrorBody") }),
  StoredDocument: object("Where a document was stored.", {
    id: text("The id of the document."),
    version: whole("Its version.", { minimum: 1 }),
    warnings: list("What may not be meant.", ref("Problem")),
  }),
  AnalyzeBody: object("What to analyze: the stored document, or another one.", {
    "document?": { type: ["object", "null"], description: "A workflow document, which is not stored. Without an id it gets that of the path." },
  }),
  Analysis: object("What is known of every run of a workflow before it starts.", {
    errors: list("Problems for which the document is refused.", ref("Problem")),
    warnings: list("What may not be meant, or will go wrong.", ref("Problem")),
    facts: orNull(ref("Facts", "What a run can take at most; none of a document with errors.")),
  }),
  Facts: object("What one attempt of a run can take that nobody pauses, extends, retries or restarts, with executors and messages on time.", {
    ends: object("Whether every run ends without help.", {
      surely: flag("Whether it does."),
      reason: text("What ends it, or why that is not sure."),
      "pointer?": text("The node that makes it unsure: a JSON pointer."),
    }),
    duration_max_ms: orNull(whole("The longest a run can take; none if there is no bound.")),
    tokens_alive_max: whole("The most tokens that are alive at once."),
    tokens_max: whole("The most tokens that are created."),
    rows_written: object("Rows that are written, with those of called runs.", {
      happy: orNull(whole("If all goes well.")),
      worst: orNull(whole("At most; none if there is no bound.")),
    }),
    dollars: object("What a run costs on the platform, with the runs it calls.", {
      happy: orNull({ type: "number", description: "If all goes well." }),
      worst: orNull({ type: "number", description: "At most; none if there is no bound." }),
    }),
    longest_wait: object("The longest time in which nothing is decided.", {
      ms: orNull(whole("Its length; none if there is no bound.")),
      "pointer?": text("What waits so long: a JSON pointer."),
    }),
  }),
  Document: object("A document of the catalogue.", {
    id: text("The id of the document."),
    version: whole("The version that was read.", { minimum: 1 }),
    created_at: moment("When that version was stored."),
    "created_by?": text("The name of the caller that stored it."),
    document: { type: "object", description: "The document, as it was stored." },
  }),
  DocumentSummary: object("A document in a list.", {
    id: text("The id of the document."),
    version: whole("Its newest version.", { minimum: 1 }),
    created_at: moment("When that version was stored."),
    "created_by?": text("The name of the caller that stored it."),
  }),
  BatchAnswer: object("What each start of a batch was answered with.", {
    items: list("In the order of the request.", {
      description: "The answer to one start.",
      oneOf: [
        object("A run that was started, or exists already.", {
          status: { enum: [200, 201], description: "201: the run is new. 200: it existed with the same request." },
          run: {
            description: "The run. Cut to its id where the answer would be too large.",
            oneOf: [ref("Run"), object("A run that was cut.", { id: text("Its id."), truncated: flag("It was cut.", { const: true }) })],
          },
        }),
        object("A start that was refused.", {
          status: { type: "integer", minimum: 400, maximum: 599, description: "The status that the start alone would have got." },
          error: ref("ErrorBody"),
        }),
      ],
    }),
  }),
  Operation: object("A bulk operation.", {
    id: text("The id of the operation."),
    kind: oneOf("What is done to each run.", ["cancel", "pause", "resume", "extend", "retry"]),
    status: oneOf("Whether it is done.", ["running", "completed"]),
    created_at: moment("When it was asked for."),
    created_by: orNull(text("The name of the caller that asked for it.")),
    ended_at: orNull(moment("When it was done.")),
    total: orNull(whole("The number of runs. Null until the end if a filter selects them.")),
    done: whole("Runs that are now as the operation asks."),
    failed: whole("Runs that refused it."),
    skipped: whole("Runs that had nothing to do."),
    errors: list(
      "The first 100 refusals.",
      object("A refusal of a run.", { run_id: text("The run."), code: text("The code of the refusal."), message: text("Why, cut at 300 characters.") }),
    ),
  }),
  EventAnswer: object("What an event has started.", {
    event: text("The name of the event."),
    key: text("Its key. Publish the event again with it, and nothing is started twice."),
    runs: list(
      "The runs that it has started, now or before.",
      object("A run that it has started.", {
        id: text("The run."),
        workflow_id: text("Its workflow."),
        created: flag("Whether it was started now."),
      }),
    ),
    refused: list(
      "Workflows that could not be started.",
      object("A workflow that could not be started.", { workflow_id: text("The workflow."), error: ref("ErrorBody") }),
    ),
  }),
  Breaker: object("A circuit breaker.", {
    key: text("Its key."),
    state: oneOf("`open`: calls are refused. `half_open`: one call is tried. `escalated`: it was open for too long.", [
      "closed",
      "open",
      "half_open",
      "escalated",
    ]),
    failures: whole("Failures in a row."),
    opened_at: orNull(moment("When it opened.")),
    trial_at: orNull(moment("When the next call is tried.")),
    escalated_at: orNull(moment("When it was escalated.")),
    updated_at: moment("When it last changed."),
  }),
  Notification: object("A notification about an event of the run.", {
    id: text("Its id, the same when it is sent again."),
    target: text("Where it is sent, without what may be a credential."),
    kind: oneOf("The kind of its event, or `notifications_skipped`.", [...EVENT_KINDS, "notifications_skipped"]),
    seq: whole("The number of its event."),
    status: oneOf("`failed`: given up after 24 h. `refused`: the target wants no more, or its address is not called.", ["pending", "delivered", "failed", "refused"]),
    attempts: whole("How often an attempt was answered."),
    created_at: moment("When its event happened."),
    "last_error?": text("Why the last attempt failed."),
    "next_attempt_at?": moment("When the next attempt is made."),
    "delivered_at?": moment("When it was delivered."),
    "ended_at?": moment("When it was given up or refused."),
    "skipped?": object("Events that were not posted one by one, because too many waited.", {
      count: whole("How many."),
      first_seq: whole("The number of the first one."),
      last_seq: whole("The number of the last one."),
      kinds: { type: "object", description: "How many of each kind.", additionalProperties: whole("A number of events.") },
    }),
  }),
  Health: object("The Worker answers.", {
    status: { const: "ok", description: "Always `ok`." },
    version: text("The version of Curfew."),
  }),
  Identity: object("What the credential of a request may do.", {
    name: orNull(text("The name of the credential. Null in development, where requests need none.")),
    roles: list("Its roles, with those that they include.", oneOf("A role.", ["read", "start", "decide", "operate", "admin"])),
    workflows: orNull(list("The workflows that it may see; null for all.", text("An id in which `*` stands for any characters."))),
  }),
  Empty: { type: "object", description: "Nothing to say.", additionalProperties: false },
  Any: any("Any JSON."),
};
