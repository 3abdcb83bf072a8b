// The paths that change runs: one of them, or many in the background.
import { WORKFLOW } from "./codes.mjs";
import { run, runPaths } from "./run_paths.mjs";
import { ANY_RUN_ID, inPath, NAME, object, ref, text } from "./shapes.mjs";

/** @typedef {import("./answers.mjs").Operation} Operation */

const tag = "Controls";
const name = (/** @type {string} */ description) => text(description, { pattern: NAME });
const answers = { 200: { description: "The run, after the change.", schema: ref("Run") } };

/**
 * A control of one run.
 * @param {string} id
 * @param {string} summary
 * @param {string} body the name of its shape
 * @param {string[]} errors
 * @param {object} example
 * @returns {Operation}
 */
const control = (id, summary, body, errors, example) => ({
  id: `${id}Run`,
  tag,
  summary,
  role: "operate",
  parameters: [run],
  body: ref(body),
  example,
  answers,
  uses: ["object"],
  errors: ["422 invalid_request", ...errors],
});

/**
 * A control of many runs.
 * @param {string} id
 * @param {object} example
 * @returns {Record<string, Operation>}
 */
const bulk = (id, example) => ({
  post: {
    id: `${id}Runs`,
    tag: "Bulk operations",
    summary: `Sends \`${id}\` to many runs, in the background.`,
    role: "operate",
    body: ref(`Bulk${id[0]?.toUpperCase()}${id.slice(1)}Body`),
    bodyRequired: true,
    example,
    answers: {
      202: {
        description: "The operation has begun; `GET /v1/operations/{operation_id}` says how far it is.",
        schema: object("The operation.", { operation_id: text("Its id.") }),
      },
    },
    uses: ["database"],
    errors: ["422 invalid_request"],
  },
});

const ON_VERSION = [...WORKFLOW, "409 version_does_not_fit", "413 limit_exceeded"];

/** @type {Record<string, Record<string, Operation>>} */
export const controlPaths = {
  "/v1/runs/{run_id}/cancel": {
    post: control("cancel", "Ends a run. Calls in flight are aborted, sub-workflows are cancelled; twice is once.", "CancelBody", ["409 run_finished", "413 limit_exceeded"], {
      reason: "the shop is closed",
    }),
  },
  "/v1/runs/{run_id}/pause": {
    post: control("pause", "Stops all clocks of a run, and those of its sub-workflows.", "ByBody", ["409 run_finished", "409 run_ending"], {}),
  },
  "/v1/runs/{run_id}/resume": {
    ...runPaths["/v1/runs/{run_id}/resume"],
    post: control(
      "resume",
      "Lets a paused run go on.",
      "ByBody",
      ["409 run_finished", "409 run_ending", "409 not_paused", "409 paused_by_parent", "409 decision_needed"],
      {},
    ),
  },
  "/v1/runs/{run_id}/extend": {
    post: control("extend", "Gives a run more time, up to 30 days at once.", "ExtendBody", ["409 run_finished", "409 run_ending", "409 no_timeout", "409 limit_of_parent"], {
      by: "10m",
    }),
  },
  "/v1/runs/{run_id}/retry": {
    post: control("retry", "Lets a run go on that failed or timed out.", "RetryBody", [...ON_VERSION, "409 run_not_ended", "409 run_ending", "409 not_resumable"], {
      mode: "retry_step",
    }),
  },
  "/v1/runs/{run_id}/restart": {
    post: control("restart", "Begins a run again, as its next attempt.", "RestartBody", [...ON_VERSION, "409 run_ending", "409 no_way_back"], {}),
  },
  "/v1/runs/{run_id}/signals/{name}": {
    post: {
      ...control("signal", "Sends a signal to a run. It is kept if its wait has not begun.", "Any", [], { paid: true }),
      role: "start",
      parameters: [run, inPath("name", "The name of the signal.", name("A name."))],
      errors: ["404 unknown_signal", "409 run_finished", "409 run_ending", "413 limit_exceeded", "429 too_many_signals"],
    },
  },
  "/v1/runs/{run_id}/gates/{gate_id}": {
    post: {
      ...control("decide", "Decides a gate. The first decision counts.", "DecisionBody", [], { choice: "approve" }),
      id: "decideGate",
      tag: "Gates",
      role: "decide",
      bodyRequired: true,
      parameters: [run, inPath("gate_id", "The id of the gate.", name("An id."))],
      errors: [
        "403 four_eyes",
        "409 gate_closed",
        "409 run_finished",
        "409 run_ending",
        "409 no_timeout",
        "409 limit_of_parent",
        "413 limit_exceeded",
        "422 invalid_request",
      ],
    },
  },
  "/v1/runs:cancel": bulk("cancel", { filter: { workflow: "order", status: ["running"] }, with: { reason: "the shop is closed" } }),
  "/v1/runs:pause": bulk("pause", { ids: ["order-1", "order-2"] }),
  "/v1/runs:resume": bulk("resume", { ids: ["order-1", "order-2"] }),
  "/v1/runs:extend": bulk("extend", { filter: { workflow: "order" }, with: { by: "10m" } }),
  "/v1/runs:retry": bulk("retry", { filter: { status: "failed" }, with: { mode: "retry_step" } }),
  "/v1/operations/{operation_id}": {
    get: {
      id: "readOperation",
      tag: "Bulk operations",
      summary: "How far a bulk operation is.",
      role: "read",
      parameters: [inPath("operation_id", "The id of the operation.", text("An id.", { pattern: ANY_RUN_ID }))],
      answers: { 200: { description: "The operation.", schema: ref("Operation") } },
      uses: ["database"],
      errors: ["404 not_found"],
    },
  },
};
