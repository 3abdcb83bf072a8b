// The schema of actions: src/definition/action.rs and the readers of the kinds.
import { CLASSES } from "./run_shapes.mjs";
import {
  choice,
  duration,
  EXPRESSION,
  expression,
  forPeople,
  has,
  id,
  jsonSchema,
  object,
  oneOrMore,
  oneSpelling,
  orExpression,
  part,
  schemaField,
  string,
  targets,
  template,
  version,
  when,
  without,
} from "./document_parts.mjs";

const required = (/** @type {string} */ description) => ({ description, not: { type: "null" } });
const words = (/** @type {string} */ description) => ({ type: "string", minLength: 1, description });
const headers = template("The headers of the request: an object. A null is left out.");
const ofExpression = { type: "string", pattern: EXPRESSION };

const message = {
  description: "A message: an object, or an expression that gives one.",
  anyOf: [
    {
      type: "object",
      required: ["role"],
      properties: {
        role: {
          description: "Who says it.",
          anyOf: [{ enum: ["system", "developer", "user", "assistant", "tool"] }, ofExpression],
        },
        content: { description: "What is said." },
        tool_calls: { description: "The tools that the model called: `[{id, name, arguments}]`." },
        tool_call_id: { description: "The call that a message of a tool answers." },
      },
      anyOf: [{ required: ["content"] }, { required: ["tool_calls"] }],
    },
    ofExpression,
  ],
};

/** @type {Record<string, import("./shapes.mjs").Schema>} by kind */
const IMPLEMENTATIONS = {
  http_request: object("Calls a URL.", {
    url: required("The URL, `http` or `https`."),
    "method?": template("The method; GET by default."),
    "headers?": headers,
    "query?": template("An object that is added to the URL. A list repeats its name, a null is left out."),
    "body?": template("The body. A string is sent as text, other JSON as JSON."),
    "expect_status?": oneOrMore({ type: "integer", minimum: 100, maximum: 599, description: "The statuses of success; 200 to 299 by default." }),
  }),
  service_call: object("Calls a Worker that is bound to the executor.", {
    binding: string("The name of the service binding."),
    "path?": template("The path; `/` by default."),
    "method?": template("The method; POST by default."),
    "headers?": headers,
    "body?": template("The body; the input of the step by default."),
  }),
  update_context: object("Writes to the `state` and `output` of the task.", {
    set: targets("What to write: `{target: value}`. Targets are `state.x`, `output.y`, or `y` for `output.y`."),
  }),
  assert: object("Fails unless a condition holds.", {
    condition: expression("An expression that must be true."),
    "message?": template("The message of the failure."),
  }),
  llm_call: object(
    "Asks a language model.",
    {
      provider: choice("Whose API it is. `openai`: any server with chat completions.", ["openai", "anthropic", "workers_ai"]),
      model: words("The model."),
      "prompt?": words("One message of the user. Either this or `messages`."),
      "messages?": orExpression({ type: "array", minItems: 1, items: message, description: "The messages. Either these or `prompt`." }),
      "system?": words("Instructions."),
      "base_url?": words("The address of the API; that of the provider by default."),
      "api_key?": words("The key of the API: a `${secret.NAME}`."),
      "headers?": orExpression({ type: "object", description: "More headers of the request." }),
      "max_tokens?": orExpression({ type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: "The most tokens of the answer." }),
      "temperature?": orExpression({ type: "number", minimum: 0, maximum: 2, description: "How freely the model chooses." }),
      "top_p?": orExpression({ type: "number", minimum: 0, maximum: 1, description: "The share of likely tokens that it chooses from." }),
      "stop?": { description: "Texts at which the answer ends.", anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
      "tools?": orExpression({
        type: "array",
        items: { description: "A tool: `{name, description, parameters}`, or an expression that gives one.", anyOf: [{ type: "object" }, ofExpression] },
        description: "The tools that the model may call.",
      }),
      "tool_choice?": orExpression({ description: "Which tool it calls, or `{name}` of one.", anyOf: [{ type: "object" }, { enum: ["auto", "none", "required"] }] }),
      "response_format?": object(
        "The form of the answer.",
        {
          type: choice("With the last two the result has `json`.", ["text", "json_object", "json_schema"]),
          "schema?": jsonSchema("What the answer must fit. Only with `json_schema`."),
        },
        [{ if: { properties: { type: { const: "json_schema" } } }, then: has("schema"), else: without(["schema"]) }],
      ),
    },
    [
      { oneOf: [has("prompt"), has("messages")] },
      when({ properties: { provider: { const: "workers_ai" } } }, without(["base_url", "api_key", "headers"])),
    ],
  ),
  mcp_tool: object("Calls a tool of an MCP server.", {
    server_url: required("The URL of the server, with Streamable HTTP."),
    tool: required("The name of the tool."),
    "headers?": headers,
    "arguments?": template("The arguments; the input of the step by default."),
  }),
  shell: object(
    "Has a runner execute a command.",
    {
      command: required("The command."),
      "binding?": string("The runner, by a service binding of the executor. Either this or `url`."),
      "url?": template("The runner, by its URL. Either this or `binding`."),
      "headers?": headers,
      "args?": template("The arguments: a list. A null is left out."),
      "env?": template("Variables of the environment: an object."),
      "cwd?": template("The directory to run it in."),
      "stdin?": template("What the command reads."),
      "expect_exit?": oneOrMore({ type: "integer", minimum: 0, maximum: 255, description: "The exit codes of success; 0 by default." }),
    },
    [{ oneOf: [has("binding"), has("url")] }],
  ),
  workflow_call: object("Runs another workflow, as a node with `workflow_id` does.", {
    workflow_id: id("The workflow to run."),
    "version?": version("Its version; the newest by default."),
    "on_failure?": choice("`catch`: a failed run completes the step with its error.", ["propagate", "catch"], "propagate"),
  }),
  emit_event: object("Emits an event, which starts the workflows that have it as their trigger.", {
    name: { type: "string", pattern: `^[A-Za-z0-9._-]{1,128}$|${EXPRESSION}`, description: "The name of the event." },
    "payload?": template("The input of the runs that it starts; null by default."),
  }),
};

const CALLS = ["http_request", "service_call", "llm_call", "mcp_tool", "shell"];
const ASYNC = ["http_request", "service_call"];

const retryPolicy = object(
  "Retries of a single call.",
  {
    "max_attempts?": { type: "integer", minimum: 1, maximum: 100, description: "The most calls, the first one included. By default it depends on the failure." },
    "backoff?": choice("How the delay grows.", ["none", "linear", "exponential"], "exponential"),
    ...duration("initial_delay", "The delay before the first retry; 1 s by default."),
    ...duration("max_delay", "The longest delay; 1 min by default."),
    "jitter?": { type: "boolean", default: true, description: "Whether up to half of the delay is added at random." },
    "retry_on?": {
      description: "The classes of failures that are retried, or `*` for all. A timeout is retried by `on_timeout` only, and what is permanent never.",
      type: "array",
      anyOf: [{ contains: { const: "*" } }, { items: { enum: CLASSES.filter((name) => name !== "permanent") } }],
    },
    ...duration("total_timeout", "The longest that all calls and delays of the step may take together."),
  },
  oneSpelling("initial_delay", "max_delay", "total_timeout"),
);

/** @param {boolean} idRequired */
const action = (idRequired) =>
  object(
    "An action: one operation.",
    {
      [idRequired ? "id" : "id?"]: id("The id of the action."),
      ...schemaField,
      ...forPeople,
      kind: choice("What it does.", Object.keys(IMPLEMENTATIONS)),
      implementation: { type: "object", description: "How it does it. Which fields it has depends on the kind." },
      "execution?": object(
        "Limits, retries and the breaker.",
        {
          ...duration("timeout", "The longest that one call may take."),
          "on_timeout?": choice("Whether a call that timed out is made again.", ["fail", "retry"], "fail"),
          "retry_policy?": part("retry_policy"),
          "mode?": choice("`async`: the result comes by a callback.", ["sync", "async"], "sync"),
          "breaker?": { type: "string", pattern: `^[A-Za-z0-9._:-]{1,128}$|${EXPRESSION}`, description: "The key of a circuit breaker." },
        },
        oneSpelling("timeout"),
      ),
      "input_schema?": jsonSchema("What the input of the step must fit."),
      "output_schema?": jsonSchema("What the result must fit."),
    },
    [
      ...Object.keys(IMPLEMENTATIONS).map((kind) => when({ required: ["kind"], properties: { kind: { const: kind } } }, { properties: { implementation: part(kind) } })),
      when({ properties: { kind: { not: { enum: CALLS } } } }, { properties: { execution: without(["retry_policy", "breaker"]) } }),
      when({ properties: { kind: { not: { enum: ASYNC } } } }, { properties: { execution: { properties: { mode: { not: { const: "async" } } } } } }),
    ],
  );

/** The `$defs` of actions. */
export const actionParts = { action: action(true), inline_action: action(false), retry_policy: retryPolicy, ...IMPLEMENTATIONS };
