// The whole OpenAPI document. scripts/openapi.mjs writes it to src/api/openapi.json.
import { operation, Refusals } from "./answers.mjs";
import { bodyShapes } from "./body_shapes.mjs";
import { controlPaths } from "./control_paths.mjs";
import { historyShapes } from "./history_shapes.mjs";
import { otherPaths } from "./other_paths.mjs";
import { otherShapes } from "./other_shapes.mjs";
import { replayShapes } from "./replay_shapes.mjs";
import { runPaths } from "./run_paths.mjs";
import { runShapes } from "./run_shapes.mjs";
import { simulationShapes } from "./simulation_shapes.mjs";
import { whyShapes } from "./why_shapes.mjs";
import { text, whole } from "./shapes.mjs";

/** @param {string} description @param {object} schema */
const header = (description, schema) => ({ description, schema });

/** @param {string} version that of Cargo.toml */
export function openapi(version) {
  const refusals = new Refusals();
  const paths = Object.entries({ ...runPaths, ...controlPaths, ...otherPaths }).map(([path, operations]) => {
    const all = Object.entries(operations).map(([method, one]) => [method, operation(method, one, refusals)]);
    return [path, Object.fromEntries(all)];
  });
  // The answers of requests that are for no operation.
  const [unknownPath, unknownMethod] = [refusals.refer("404", ["not_found"], false), refusals.refer("405", ["method_not_allowed"], false)];
  return {
    openapi: "3.1.1",
    info: {
      title: "Curfew",
      version,
      summary: "A durable workflow coordinator for Cloudflare Workers.",
      description:
        "JSON over HTTP, and the same over a service binding. Times are Unix milliseconds. Unknown fields of a body and unknown query parameters are refused. HEAD is answered as GET, without the body. A path that is not here is answered with 404 `not_found`, another method with 405 `method_not_allowed`. `x-curfew-role` is the role that an operation needs.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The deployment that served this document." }],
    security: [{ bearer: [] }, { access: [] }],
    tags: [
      { name: "Runs", description: "Start and read runs." },
      { name: "Simulation", description: "Run a workflow in virtual time." },
      { name: "Controls", description: "Change a run." },
      { name: "Bulk operations", description: "Change many runs in the background." },
      { name: "Gates", description: "Questions to people." },
      { name: "Documents", description: "Workflows, tasks and actions." },
      { name: "Events", description: "Start the workflows that an event triggers." },
      { name: "Callbacks", description: "Results of async actions." },
      { name: "Breakers", description: "Circuit breakers of dependencies." },
      { name: "Service", description: "The deployment itself." },
    ],
    "x-curfew-unknown-path": unknownPath,
    "x-curfew-unknown-method": unknownMethod,
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A token of `CURFEW_TOKENS`. In development no credential is needed." },
        access: { type: "apiKey", in: "header", name: "Cf-Access-Jwt-Assertion", description: "The assertion that Cloudflare Access adds." },
      },
      headers: {
        "Cache-Control": { ...header("Answers are not to be stored.", { type: "string", const: "no-store" }), required: true },
        "X-Content-Type-Options": { ...header("The type of an answer is not to be guessed.", { type: "string", const: "nosniff" }), required: true },
        "X-Curfew-Bill": header("What the request has cost, for callers with the role `admin`.", text("Names and numbers.")),
        "WWW-Authenticate": { ...header("How to send a credential.", { type: "string", const: "Bearer" }), required: true },
        Allow: { ...header("The methods that the path takes.", text("Methods, with commas between them.")), required: true },
        "Retry-After": header("When to repeat the request.", whole("Seconds.")),
      },
      responses: refusals.components(),
      schemas: {
        Id: text("The id of a document: 1 to 64 of `a-z 0-9 - _`.", { pattern: "^[a-z0-9_-]{1,64}$" }),
        ...runShapes,
        ...historyShapes,
        ...whyShapes,
        ...replayShapes,
        ...simulationShapes,
        ...bodyShapes,
        ...otherShapes,
      },
    },
  };
}

/**
 * JSON with one line for each path, answer and shape, so that a change of one of them is a change of one line.
 * @param {any} value
 * @param {number} depth how deep lines are broken
 * @param {string} indent
 * @returns {string}
 */
export function lines(value, depth = 3, indent = "") {
  if (depth === 0 || typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  const inner = `${indent}  `;
  const fields = Object.entries(value).map(([name, field]) => `${inner}${JSON.stringify(name)}: ${lines(field, depth - 1, inner)}`);
  return `{\n${fields.join(",\n")}\n${indent}}`;
}
