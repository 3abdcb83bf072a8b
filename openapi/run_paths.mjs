// The paths of runs.
import { WORKFLOW } from "./codes.mjs";
import { EVENT_KINDS } from "./history_shapes.mjs";
import { RUN_STATUSES } from "./run_shapes.mjs";
import { ANY_RUN_ID, header, inPath, list, object, oneOf, orNull, page, query, ref, text, whole } from "./shapes.mjs";

/** @typedef {import("./answers.mjs").Operation} Operation */

const tag = "Runs";
export const run = inPath("run_id", "The id of the run. Ids of sub-workflows hold a `~`.", text("A run id.", { pattern: ANY_RUN_ID }));
export const limit = query("limit", "The most items of the page.", whole("A number of items.", { minimum: 1, maximum: 1000, default: 100 }));
export const cursor = query("cursor", "`next_cursor` of the previous page. Empty for the first page.", text("A cursor."));
const position = query("cursor", "`next_cursor` of the previous page.", text("A cursor.", { pattern: "^[0-9]*$" }));
const after = query("after", "The number of the last item that was seen. It means the same as `cursor`; only one of both may be given.", whole("A number.", { maximum: 9007199254740991 }));
const wait = query("wait_ms", "How long to wait for the end of the run. Milliseconds.", whole("A time.", { maximum: 30_000, default: 0 }));
export const traceparent = header("traceparent", "The trace of the caller, by W3C Trace Context. The run continues it.", text("A context."));
const moment = (/** @type {string} */ description) => ({ type: "integer", minimum: 0, maximum: 9007199254740991, description });

/** @param {string} description */
const theRun = (description) => ({ 200: { description, schema: ref("Run") } });
const STARTED = {
  201: { description: "The new run.", schema: ref("Run") },
  200: { description: "The run, which the same request had started before.", schema: ref("Run") },
};

/** @type {Record<string, Record<string, Operation>>} */
export const runPaths = {
  "/v1/workflows/{workflow_id}/runs": {
    post: {
      id: "startRun",
      tag,
      summary: "Starts a run.",
      description: "The same `run_id` with the same request is answered with the same run, so a start can be repeated safely.",
      role: "start",
      parameters: [inPath("workflow_id", "The workflow to run.", ref("Id")), wait, traceparent],
      body: ref("StartBody"),
      example: { run_id: "order-1", input: { name: "Ada" } },
      answers: STARTED,
      uses: ["object", "database"],
      errors: [
        ...WORKFLOW,
        "409 run_exists",
        "413 limit_exceeded",
        "422 invalid_request",
        "422 invalid_input",
        "422 over_hard_limit",
        "422 under_minimum",
      ],
    },
  },
  "/v1/runs:batch": {
    post: {
      id: "startBatch",
      tag,
      summary: "Starts up to 100 runs, each with an outcome of its own.",
      role: "start",
      parameters: [traceparent],
      body: ref("BatchBody"),
      example: { items: [{ workflow_id: "order", run_id: "order-1", input: {} }] },
      bodyRequired: true,
      answers: { 200: { description: "What each start was answered with.", schema: ref("BatchAnswer") } },
      uses: ["database"],
      errors: ["422 invalid_request"],
    },
  },
  "/v1/simulate": {
    post: {
      id: "simulate",
      tag: "Simulation",
      summary: "Runs a workflow in virtual time, with mocks. Nothing is stored, and no call is made.",
      role: "read",
      body: ref("SimulateBody"),
      example: { workflow: { id: "pause", nodes: [{ id: "a", wait: { sleep: "24h" } }] } },
      bodyRequired: true,
      answers: { 200: { description: "The run at its end, or where the simulation stopped.", schema: ref("Simulation") } },
      uses: ["database"],
      errors: [
        "404 not_found",
        "413 limit_exceeded",
        "422 invalid_document",
        "422 invalid_input",
        "422 invalid_request",
        "422 no_mock",
        "422 over_hard_limit",
        "422 under_minimum",
      ],
    },
  },
  "/v1/runs": {
    get: {
      id: "listRuns",
      tag,
      summary: "Lists runs, about a second behind the runs themselves.",
      description:
        "One filter, or `workflow` with `status`, costs the database what it shows. Other combinations may answer a short or empty page with a `next_cursor`: go on until it is null.",
      role: "read",
      parameters: [
        query("status", "Several with commas, or by repetition.", { type: "array", items: oneOf("A status.", RUN_STATUSES) }, { style: "form", explode: false }),
        query("workflow", "The id of the workflow.", ref("Id")),
        query("tag", "A tag of the workflow.", text("A tag of 1 to 64 bytes.", { minLength: 1, maxLength: 64 })),
        query("since", "Runs that started then or later.", moment("Unix milliseconds.")),
        query("until", "Runs that started then or earlier.", moment("Unix milliseconds.")),
        query("parent", "The run that called it.", text("A run id.", { pattern: ANY_RUN_ID })),
        query("id_prefix", "Ids that begin so, in the order of ids.", text("The beginning of a run id.", { pattern: "^[A-Za-z0-9._~-]{1,512}$" })),
        query("sort", "`started`: newest first. `remaining`: runs that have not ended and have a limit, nearest deadline first.", oneOf("An order.", ["started", "remaining"])),
        limit,
        cursor,
      ],
      answers: { 200: { description: "A page of runs.", schema: page("A page of runs.", ref("RunSummary")) } },
      uses: ["database"],
    },
  },
  "/v1/runs/{run_id}": {
    get: {
      id: "readRun",
      tag,
      summary: "Reads a run; with `wait_ms` it waits for the end.",
      role: "read",
      parameters: [run, wait],
      answers: theRun("The run."),
      uses: ["object"],
    },
  },
  "/v1/runs/{run_id}/tokens": {
    get: {
      id: "listTokens",
      tag,
      summary: "The path that a run took: one token for each visit of a node.",
      role: "read",
      parameters: [run, limit, position],
      answers: { 200: { description: "A page of tokens. It may be shorter than `limit` where tokens are large.", schema: page("A page of tokens.", ref("Token")) } },
      uses: ["object"],
    },
  },
  "/v1/runs/{run_id}/events": {
    get: {
      id: "listEvents",
      tag,
      summary: "The history of a run, in the order of commits.",
      role: "read",
      parameters: [run, after, limit, position],
      answers: { 200: { description: "A page of events. It may be shorter than `limit` where events are large.", schema: page("A page of events.", ref("Event")) } },
      uses: ["object"],
    },
  },
  "/v1/runs/{run_id}/live": {
    get: {
      id: "watchRun",
      tag,
      summary: "The history of a run as it is committed, by server-sent events or a WebSocket.",
      description:
        "The history comes first, then each commit's events. Every message has the JSON of an `Event`, or of the type `progress` that of the progress of a token. The stream closes after the event that ends the run.",
      role: "read",
      parameters: [
        run,
        query("after", "The `seq` of the last event that was seen.", whole("A number.", { maximum: 9007199254740991 })),
        query("kinds", "Only events of these kinds, with commas between them.", { type: "array", minItems: 1, items: oneOf("A kind.", [...EVENT_KINDS, "progress"]) }, { style: "form", explode: false }),
        header("Last-Event-ID", "The `seq` of the last event that was seen. It counts more than `after`.", whole("A number.")),
        header("Upgrade", "`websocket` asks for a WebSocket.", text("A protocol.")),
      ],
      answers: {
        101: { description: "A WebSocket follows." },
        200: {
          description: "Server-sent events: `id` is the `seq`, `data` the JSON of an `Event`.",
          schema: text("Messages of server-sent events."),
          type: "text/event-stream",
        },
        204: { description: "The run has ended, and nothing is left after `Last-Event-ID` or `after`. A WebSocket is accepted, and closed with the code 1000." },
      },
      uses: ["object"],
      errors: ["429 too_many_watchers"],
    },
  },
  "/v1/runs/{run_id}/notifications": {
    get: {
      id: "listNotifications",
      tag,
      summary: "What became of the notifications about a run, in the order of their events.",
      role: "read",
      parameters: [run, limit, position],
      answers: {
        200: {
          description: "A page of notifications.",
          schema: object("A page of notifications.", {
            items: list("The items of this page.", ref("Notification")),
            next_cursor: orNull(text("Pass it as `cursor` to get the next page. Null on the last page.")),
            "problem?": text("What is wrong with the variable `CURFEW_NOTIFY`, whose targets get nothing."),
          }),
        },
      },
      uses: ["object"],
    },
  },
  "/v1/runs/{run_id}/timeouts": {
    get: {
      id: "listTimeouts",
      tag,
      summary: "The records of the timeouts of a run; JSON Lines under `Accept: application/x-ndjson`.",
      role: "read",
      parameters: [run, after, limit, position],
      answers: {
        200: {
          description: "A page of records, or the whole log as JSON Lines, each line a `TimeoutLine`.",
          types: {
            "application/json": page("A page of records.", ref("Timeout")),
            "application/x-ndjson": text("One `TimeoutLine` on each line."),
          },
        },
      },
      uses: ["object"],
    },
  },
  "/v1/runs/{run_id}/timeouts/{n}": {
    get: {
      id: "readTimeout",
      tag,
      summary: "Reads the record of a timeout, and why it came to it.",
      role: "read",
      parameters: [run, inPath("n", "The `seq` of its event.", whole("A number."))],
      answers: { 200: { description: "The record.", schema: ref("Timeout") } },
      uses: ["object"],
    },
  },
  "/v1/runs/{run_id}/deliverable": {
    get: {
      id: "readDeliverable",
      tag,
      summary: "What an ended run has to show.",
      role: "read",
      parameters: [run],
      answers: { 200: { description: "Its output, or what it got done.", schema: ref("Deliverable") } },
      uses: ["object"],
      errors: ["409 run_not_ended"],
    },
  },
  "/v1/runs/{run_id}/export": {
    get: {
      id: "exportRun",
      tag: "Simulation",
      summary: "The run with its history, durations and answers, for tests, what-if and reports.",
      role: "read",
      parameters: [run, query("redact", "Leaves out inputs, outputs and all other values of the run.", oneOf("What is left out.", ["values"]))],
      answers: { 200: { description: "The export.", schema: ref("RunExport") } },
      uses: ["object", "database"],
      errors: ["422 limit_exceeded"],
    },
  },
  "/v1/runs/{run_id}/what-if": {
    post: {
      id: "whatIf",
      tag: "Simulation",
      summary: "Plays the recorded run again in virtual time, with changes: other limits, other policies. Nothing is stored, and no call is made.",
      role: "read",
      parameters: [run],
      body: ref("WhatIfBody"),
      example: { changes: [{ op: "add", path: "/timeout", value: "2h" }] },
      answers: { 200: { description: "The run as it was, and as it would have been.", schema: ref("WhatIf") } },
      uses: ["object", "database"],
      errors: ["422 invalid_document", "422 invalid_input", "422 invalid_request", "422 limit_exceeded", "422 not_replayable", "422 over_hard_limit", "422 under_minimum"],
    },
  },
  "/v1/runs/{run_id}/resume": {
    get: {
      id: "readResumeOptions",
      tag,
      summary: "Which ways back a run has, which one is recommended, and why.",
      role: "read",
      parameters: [run],
      answers: { 200: { description: "The ways back.", schema: ref("ResumeOptions") } },
      uses: ["object"],
    },
  },
};
