// The paths of documents, gates, events, callbacks, breakers and the service itself.
import { cursor, limit, traceparent } from "./run_paths.mjs";
import { ANY_RUN_ID, BREAKER_KEY, header, inPath, NAME, page, query, ref, text, whole } from "./shapes.mjs";

/** @typedef {import("./answers.mjs").Operation} Operation */

/** @param {string} one @param {string} many @returns {Record<string, Record<string, Operation>>} */
function documents(one, many) {
  const tag = "Documents";
  const article = one.startsWith("a") ? "an" : "a";
  const id = inPath(`${one}_id`, `The id of the ${one}.`, ref("Id"));
  const name = `${one[0]?.toUpperCase()}${one.slice(1)}`;
  return {
    [`/v1/${many}`]: {
      get: {
        id: `list${name}s`,
        tag,
        summary: `Lists the newest versions of all ${many}, by id.`,
        role: "read",
        parameters: [limit, cursor],
        answers: { 200: { description: `A page of ${many}.`, schema: page(`A page of ${many}.`, ref("DocumentSummary")) } },
        uses: ["database"],
      },
    },
    [`/v1/${many}/{${one}_id}`]: {
      get: {
        id: `read${name}`,
        tag,
        summary: `Reads ${article} ${one}.`,
        role: "read",
        parameters: [id, query("version", "The version to read; the newest by default.", whole("A version.", { minimum: 1, maximum: 9007199254740991 }))],
        answers: { 200: { description: `The ${one}.`, schema: ref("Document") } },
        uses: ["database"],
        errors: ["404 not_found"],
      },
      put: {
        id: `put${name}`,
        tag,
        summary: `Stores ${article} ${one}. Changed content becomes the next version.`,
        role: "admin",
        parameters: [id],
        body: { type: "object", description: `The document. \`/schema/${one}.json\` is its JSON Schema. Without an id it gets that of the path.` },
        bodyRequired: true,
        answers: {
          201: { description: "A new version was stored.", schema: ref("StoredDocument") },
          200: { description: "The newest version has the same content already.", schema: ref("StoredDocument") },
        },
        uses: ["database"],
        errors: ["409 limit_exceeded", "422 invalid_document", "422 invalid_request"],
      },
    },
  };
}

/** @type {Record<string, Record<string, Operation>>} */
export const otherPaths = {
  ...documents("workflow", "workflows"),
  ...documents("task", "tasks"),
  ...documents("action", "actions"),
  "/v1/workflows/{workflow_id}/analyze": {
    post: {
      id: "analyzeWorkflow",
      tag: "Documents",
      summary: "Says what will go wrong in runs of a workflow, and what a run can take at most. Nothing is stored.",
      role: "read",
      parameters: [
        inPath("workflow_id", "The id of the workflow.", ref("Id")),
        query("version", "The stored version to analyze; the newest by default.", whole("A version.", { minimum: 1, maximum: 9007199254740991 })),
      ],
      body: ref("AnalyzeBody"),
      answers: { 200: { description: "The analysis, also of a document with errors.", schema: ref("Analysis") } },
      uses: ["database"],
      errors: ["404 not_found", "422 limit_exceeded", "422 invalid_request"],
    },
  },
  "/v1/gates": {
    get: {
      id: "listGates",
      tag: "Gates",
      summary: "Everything that waits for a person, oldest first.",
      role: "read",
      parameters: [query("run", "Gates of this run only.", text("A run id.", { pattern: ANY_RUN_ID })), limit, cursor],
      answers: { 200: { description: "A page of open gates. Long texts are cut.", schema: page("A page of gates.", ref("Gate")) } },
      uses: ["database"],
    },
  },
  "/v1/events/{name}": {
    post: {
      id: "publishEvent",
      tag: "Events",
      summary: "Reports an event, which starts every workflow that it triggers.",
      description: "The body is the input of the runs; null if there is none.",
      role: "start",
      parameters: [
        inPath("name", "The name of the event.", text("A name.", { pattern: NAME })),
        traceparent,
        header("Idempotency-Key", "With the same key nothing is started twice.", text("A key.", { pattern: "^[A-Za-z0-9._:-]{1,128}$" })),
      ],
      body: ref("Any"),
      example: { order: 7 },
      answers: {
        202: { description: "At least one run was started.", schema: ref("EventAnswer") },
        200: { description: "Nothing new was started.", schema: ref("EventAnswer") },
      },
      uses: ["database"],
      errors: ["409 key_used", "413 limit_exceeded"],
    },
  },
  "/v1/callbacks/{capability}": {
    post: {
      id: "deliverCallback",
      tag: "Callbacks",
      summary: "Delivers the result of an async action.",
      description: "The capability is the credential. Services may add query parameters of their own; they are ignored.",
      role: null,
      parameters: [inPath("capability", "From the URL that the action was called with.", text("A capability."))],
      body: ref("Any"),
      example: { done: true },
      answers: { 200: { description: "The result was taken.", schema: ref("Empty") } },
      uses: ["object", "database"],
      errors: [
        "409 run_finished",
        "409 run_ending",
        "409 paused",
        "409 stale_attempt",
        "413 limit_exceeded",
        "429 rate_limited",
        "503 callback_key_unreadable",
      ],
    },
  },
  "/v1/breakers": {
    get: {
      id: "listBreakers",
      tag: "Breakers",
      summary: "The breakers that ever counted a failure, by key.",
      role: "read",
      parameters: [limit, cursor],
      answers: { 200: { description: "A page of breakers.", schema: page("A page of breakers.", ref("Breaker")) } },
      uses: ["database"],
    },
  },
  "/v1/breakers/{key}/reset": {
    post: {
      id: "resetBreaker",
      tag: "Breakers",
      summary: "Closes a breaker.",
      role: "admin",
      parameters: [inPath("key", "The key of the breaker.", text("A key.", { pattern: BREAKER_KEY }))],
      body: ref("ByBody"),
      example: {},
      answers: { 200: { description: "Its state.", schema: ref("Breaker") } },
      uses: ["object"],
      errors: ["422 invalid_request"],
    },
  },
  "/healthz": {
    get: {
      id: "readHealth",
      tag: "Service",
      summary: "Whether the Worker answers. It needs no credential.",
      role: null,
      answers: { 200: { description: "It answers.", schema: ref("Health") } },
    },
  },
  "/metrics": {
    get: {
      id: "readMetrics",
      tag: "Service",
      summary: "Metrics of all runs, for Prometheus. A credential that is bound to workflows gets 403.",
      role: "read",
      answers: { 200: { description: "The text format of Prometheus.", schema: text("Samples."), type: "text/plain" } },
      uses: ["database"],
    },
  },
  "/v1/me": {
    get: {
      id: "readIdentity",
      tag: "Service",
      summary: "What the credential of the request may do.",
      role: "read",
      answers: { 200: { description: "Its name, roles and workflows.", schema: ref("Identity") } },
    },
  },
  "/openapi.json": {
    get: {
      id: "readContract",
      tag: "Service",
      summary: "This document. It needs no credential.",
      role: null,
      answers: { 200: { description: "The document.", schema: { type: "object", description: "An OpenAPI 3.1 document." } } },
      errors: ["429 rate_limited"],
    },
  },
  "/schema/{name}.json": {
    get: {
      id: "readSchema",
      tag: "Service",
      summary: "The JSON Schema of documents, for editors and people. It needs no credential.",
      role: null,
      parameters: [inPath("name", "The kind of documents.", { type: "string", enum: ["workflow", "task", "action"], description: "A kind." })],
      answers: { 200: { description: "The schema.", schema: { type: "object", description: "A JSON Schema 2020-12." }, type: "application/schema+json" } },
      errors: ["404 not_found", "429 rate_limited"],
    },
  },
};
