// The schema of actions: src/definition/action.rs and the readers of the kinds.
import { CLASSES } from "./run_shapes.mjs";
import {
  BREAKER_KEY,
  choice,
  duration,
  EXPRESSION,
  expression,
  forPeople,
  has,
  headerNames,
  headerValue,
  id,
  jsonSchema,
  NAME,
  object,
  oneOrMore,
  oneSpelling,
  orExpression,
  part,
  schemaField,
  string,
  taskTargets,
  template,
  TOKEN,
  url,
  version,
  when,
  without,
} from "./document_parts.mjs";

const words = (/** @type {string} */ description) => ({ type: "string", minLength: 1, description });
const ofExpression = { type: "string", pattern: EXPRESSION };
const anObject = (/** @type {string} */ description) => orExpression({ type: "object", description });
const method = (/** @type {string} */ description) => ({ type: "string", pattern: `^${TOKEN}$|${EXPRESSION}`, description });
const binding = (/** @type {string} */ description) => ({ type: "string", pattern: "^[A-Za-z0-9_$.-]{1,128}$", description });
/** Of the connection: src/definition/http.rs. */
const CONNECTION_HEADERS = ["connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];
const headers = orExpression({
  type: "object",
  propertyNames: headerNames(CONNECTION_HEADERS),
  additionalProperties: headerValue,
  description: "The headers of the request, as an object. A header whose value is null is left out.",
});

/** `GET` and `HEAD` have no body. A lone expression may give null, which is none. @param {boolean} isDefault whether `GET` is the default */
const noBody = (isDefault) =>
  when(
    { required: ["body"], properties: { body: { not: { anyOf: [{ type: "null" }, ofExpression] } } } },
    {
      ...(isDefault ? { required: ["method"] } : {}),
      properties: { method: { ...(isDefault ? { type: "string" } : {}), not: { type: "string", pattern: "^([Gg][Ee][Tt]|[Hh][Ee][Aa][Dd])$" } } },
    },
  );

const message = {
  description: "A message: an object, or an expression that gives one.",
  anyOf: [
    {
      type: "object",
      required: ["role"],
      properties: {
        role: {
          description: "Who the message is from.",
          anyOf: [{ enum: ["system", "developer", "user", "assistant", "tool"] }, ofExpression],
        },
        content: { description: "The text of the message, or its parts in the form of the provider." },
        tool_calls: { description: "The tools that the model called in this message: `[{id, name, arguments}]`." },
        tool_call_id: { description: "In a message of a tool: the `id` of the call that it answers." },
      },
      anyOf: [{ required: ["content"] }, { required: ["tool_calls"] }],
    },
    ofExpression,
  ],
};

/** @type {Record<string, import("./shapes.mjs").Schema>} by kind */
const IMPLEMENTATIONS = {
  http_request: object(
    "Sends a request to a URL. The result is `{status, headers, body}`.",
    {
      url: url("The URL to call, `http` or `https`, without a user and a password in it."),
      "method?": method("The HTTP method of the request; GET by default."),
      "headers?": headers,
      "query?": anObject("Parameters that are added to the URL, as an object. A list repeats its name, and a null is left out."),
      "body?": template("The body of the request. A string is sent as text, any other JSON as JSON. GET and HEAD have none."),
      "expect_status?": oneOrMore({ type: "integer", minimum: 100, maximum: 599, description: "The status, or list of statuses, that counts as success; 200 to 299 by default." }),
    },
    [noBody(true)],
  ),
  service_call: object(
    "Sends a request to a Worker that is bound to the executor. The result is its JSON answer.",
    {
      binding: binding("The name of the service binding, as in the executor's wrangler file."),
      "path?": string("The path of the request; `/` by default."),
      "method?": method("The HTTP method of the request; POST by default."),
      "headers?": headers,
      "body?": template("The body of the request; the input of the step by default. A string is sent as text, any other JSON as JSON."),
    },
    [noBody(false)],
  ),
  update_context: object("Writes to the `state` and `output` of the task, without a call.", {
    set: taskTargets("What to write, as `{target: value}`. A target is `state.x`, `output.y`, or `y` for `output.y`."),
  }),
  assert: object("Fails with class `assertion` unless a condition holds.", {
    condition: expression("An expression that must be true, without `${}`."),
    "message?": template("The message of the failure."),
  }),
  llm_call: object(
    "Asks a language model. The result is `{text, tool_calls, usage, finish_reason, model}`, with `json` where `response_format` asks for it.",
    {
      provider: choice("Whose API is called. `openai` also stands for any server with chat completions, `workers_ai` for the executor's binding AI.", [
        "openai",
        "anthropic",
        "workers_ai",
      ]),
      model: words("The name of the model, as the provider spells it."),
      "prompt?": words("A single message of the user. Write either this or `messages`."),
      "messages?": orExpression({ type: "array", minItems: 1, items: message, description: "The conversation so far, as a list of messages. Write either this or `prompt`." }),
      "system?": words("Instructions for the model that come before the messages."),
      "base_url?": url("The address of the provider's API; the provider's own by default. Not with `workers_ai`."),
      "api_key?": { ...ofExpression, description: "The key of the provider's API, as a `${secret.NAME}`. Not with `workers_ai`." },
      "headers?": { ...headers, description: "Further headers of the request, as an object. A header whose value is null is left out. Not with `workers_ai`." },
      "max_tokens?": orExpression({ type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: "The most tokens that the answer may have. By default 4096 with `anthropic`, else as the provider decides." }),
      "temperature?": orExpression({ type: "number", minimum: 0, maximum: 2, description: "How random the answer is, from 0 (nearly always the same) to 2. The provider's default applies without it." }),
      "top_p?": orExpression({
        type: "number",
        minimum: 0,
        maximum: 1,
        description: "The model chooses among the likeliest tokens whose probabilities add up to this share. The provider's default applies without it.",
      }),
      "stop?": { description: "A text, or a list of texts, at which the answer ends.", anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
      "tools?": orExpression({
        type: "array",
        items: { description: "A tool: `{name, description, parameters}`, or an expression that gives one.", anyOf: [{ type: "object" }, ofExpression] },
        description: "The tools that the model may ask for. Curfew does not call them; the calls are in `tool_calls` of the result.",
      }),
      "tool_choice?": orExpression({
        description: "Whether the model asks for a tool: `auto` leaves it to the model, `none` forbids it, `required` demands one, and `{name}` demands that tool.",
        anyOf: [{ type: "object" }, { enum: ["auto", "none", "required"] }],
      }),
      "response_format?": object(
        "The form that the answer must have; plain text by default.",
        {
          type: choice("`text`: any text. `json_object`: a JSON object. `json_schema`: JSON that fits `schema`. With the last two the result has the parsed answer in `json`.", [
            "text",
            "json_object",
            "json_schema",
          ]),
          "schema?": jsonSchema("The JSON Schema that the answer must fit. Required with `json_schema`, refused elsewhere."),
        },
        [{ if: { properties: { type: { const: "json_schema" } } }, then: has("schema"), else: without(["schema"]) }],
      ),
    },
    [
      { oneOf: [has("prompt"), has("messages")] },
      when({ properties: { provider: { const: "workers_ai" } } }, without(["base_url", "api_key", "headers"])),
    ],
  ),
  mcp_tool: object("Calls a tool of an MCP server. The result is `{content, structured, text, is_error}`.", {
    server_url: url("The URL of the server, which speaks MCP over Streamable HTTP."),
    tool: words("The name of the tool."),
    "headers?": headers,
    "arguments?": anObject("The arguments of the tool, as an object; the input of the step by default."),
  }),
  shell: object(
    "Has a runner service execute a command. The result is `{exit_code, stdout, stderr, truncated}`.",
    {
      command: words("The program to run, without its arguments."),
      "binding?": binding("The runner, by the name of a service binding of the executor. Write either this or `url`."),
      "url?": url("The runner, by its URL. Write either this or `binding`."),
      "headers?": headers,
      "args?": orExpression({ type: "array", description: "The arguments of the command, as a list. A null is left out." }),
      "env?": anObject("Variables of the command's environment, as an object. A null is left out."),
      "cwd?": string("The directory in which the command runs; the runner's own by default."),
      "stdin?": template("What the command reads from its standard input; nothing by default."),
      "expect_exit?": oneOrMore({ type: "integer", minimum: 0, maximum: 255, description: "The exit code, or list of exit codes, that counts as success; 0 by default." }),
    },
    [{ oneOf: [has("binding"), has("url")] }],
  ),
  workflow_call: object("Runs another workflow, as a node with `workflow_id` does. The result is the output of that run.", {
    workflow_id: id("The id of the workflow to run."),
    "version?": version("The version of the workflow; the newest when the run starts by default."),
    "on_failure?": choice("What follows a failed run of that workflow. `propagate`: the step fails with its error. `catch`: the step completes with `{status, error, run_id}`.", ["propagate", "catch"], "propagate"),
  }),
  emit_event: object("Emits an event, which starts the workflows that have it as their `trigger`.", {
    name: { type: "string", pattern: `${NAME}|${EXPRESSION}`, description: "The name of the event." },
    "payload?": template("The input of the runs that the event starts; null by default."),
  }),
};

const CALLS = ["http_request", "service_call", "llm_call", "mcp_tool", "shell"];
const ASYNC = ["http_request", "service_call"];

const retryPolicy = object(
  "How often, and after which delays, a call that failed is made again.",
  {
    "max_attempts?": { type: "integer", minimum: 1, maximum: 100, description: "The most calls of the step, the first one included. By default it depends on the class of the failure." },
    "backoff?": choice("How the delay grows. `none`: no delay. `linear`: `initial_delay` times the number of the retry. `exponential`: `initial_delay`, doubled with each further retry.", ["none", "linear", "exponential"], "exponential"),
    ...duration("initial_delay", "How long to wait before the first retry; 1 s by default."),
    ...duration("max_delay", "The longest that a delay may become; 1 min by default."),
    "jitter?": { type: "boolean", default: true, description: "Whether a random part of up to half of the delay is added to it." },
    "retry_on?": {
      description: "The classes of failures after which the call is made again, or `*` for all. Timeouts follow `on_timeout` instead, and `permanent` failures are never retried.",
      type: "array",
      anyOf: [{ contains: { const: "*" } }, { items: { enum: CLASSES.filter((name) => name !== "permanent") } }],
    },
    ...duration("total_timeout", "The longest that all calls of the step and the delays between them may take together; no limit by default."),
  },
  oneSpelling("initial_delay", "max_delay", "total_timeout"),
);

/** @param {boolean} idRequired */
const action = (idRequired) =>
  object(
    "An action: one operation, such as a request or a check.",
    {
      [idRequired ? "id" : "id?"]: id(idRequired ? "The id of the action, by which nodes and steps name it." : "The id of the action. It may be left out here."),
      ...schemaField,
      ...forPeople,
      kind: choice("What the action does. Each kind has fields of its own in `implementation`.", Object.keys(IMPLEMENTATIONS)),
      implementation: { type: "object", description: "What exactly to do. Which fields it has depends on `kind`. Strings in it may hold `${...}`." },
      "execution?": object(
        "The limit, the retries and the circuit breaker of the calls.",
        {
          ...duration("timeout", "The longest that one call may take, without the retries around it; that of the preset by default."),
          "on_timeout?": choice("What follows a call that exceeds `timeout`. `fail`: the step fails. `retry`: the call is made again.", ["fail", "retry"], "fail"),
          "retry_policy?": part("retry_policy"),
          "mode?": choice("How the result arrives. `sync`: in the answer of the call. `async`: later, by a request to the callback URL that the call passes on; only for `http_request` and `service_call`.", ["sync", "async"], "sync"),
          "breaker?": { type: "string", pattern: `${BREAKER_KEY}|${EXPRESSION}`, description: "The key of the circuit breaker that the calls go through. All runs and workflows share a breaker by its key." },
        },
        oneSpelling("timeout"),
      ),
      "input_schema?": jsonSchema("A JSON Schema, draft 2020-12, that the input of the step must fit."),
      "output_schema?": jsonSchema("A JSON Schema, draft 2020-12, that the result must fit."),
    },
    [
      ...Object.keys(IMPLEMENTATIONS).map((kind) => when({ required: ["kind"], properties: { kind: { const: kind } } }, { properties: { implementation: part(kind) } })),
      when({ properties: { kind: { not: { enum: CALLS } } } }, { properties: { execution: without(["retry_policy", "breaker"]) } }),
      when({ properties: { kind: { not: { enum: ASYNC } } } }, { properties: { execution: { properties: { mode: { not: { const: "async" } } } } } }),
    ],
  );

/** The `$defs` of actions. */
export const actionParts = { action: action(true), inline_action: action(false), retry_policy: retryPolicy, ...IMPLEMENTATIONS };
