// The types of documents, written by scripts/client_types.mjs from schema/. Do not edit: change openapi/ instead.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A workflow: a graph of nodes and transitions. */
        readonly workflow: {
            /** @description The id of the workflow. It may be left out in a PUT, where the path names it. */
            readonly id: string;
            /** @description The address of this schema, for editors. Curfew ignores it. */
            readonly $schema?: unknown;
            /** @description A name for people. It has no effect on runs. */
            readonly name?: string | null;
            /** @description A text for people. It has no effect on runs. */
            readonly description?: string | null;
            /** @description Up to 20 tags of 1 to 64 bytes. Runs can be listed by the tags of their workflow. */
            readonly tags?: readonly string[] | null;
            /** @description The nodes of the graph: what the workflow does. */
            readonly nodes: readonly components["schemas"]["node"][];
            /** @description The transitions of the graph: which node follows which. */
            readonly transitions?: readonly components["schemas"]["transition"][] | null;
            /** @description The id of the node at which a run begins; the first one of `nodes` by default. */
            readonly initial_node_id?: string | null;
            /** @description Tasks that nodes of this workflow name, written here. They are used before tasks of the catalogue with the same id. */
            readonly tasks?: readonly components["schemas"]["task"][] | null;
            /** @description Actions that nodes and steps of this workflow name, written here. They are used before actions of the catalogue with the same id. */
            readonly actions?: readonly components["schemas"]["action"][] | null;
            /** @description A JSON Schema, draft 2020-12, that the input of a run must fit. A start with another input is refused. */
            readonly input_schema?: components["schemas"]["schema"] | null;
            /** @description A JSON Schema, draft 2020-12, that the output of a run must fit. */
            readonly output_schema?: components["schemas"]["schema"] | null;
            /** @description The output of a run: any JSON in which strings may hold `${...}` over `input`, `state` and `output`; `output` of the context by default. */
            readonly output_mapping?: unknown;
            /** @description The longest that a run may take; that of the preset by default, and null is no limit. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description The longest that a run may take; that of the preset by default, and null is no limit. In milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What happens to a run that exceeds `timeout`. `human_gate`: the run pauses until a person extends or ends it, see `gate`. `cancel_all`: its calls are aborted and it ends as `timed_out`. `fail`: the same, and it ends as `failed`. */
            readonly on_timeout?: ("human_gate" | "cancel_all" | "fail") | null;
            /** @description How long a run that has exceeded `timeout` waits for a person, where `on_timeout` is `human_gate`. It also applies to the gates of `escalate_on`. */
            readonly gate?: {
                /** @description The longest to wait for a decision; 7 days by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string;
                /** @description The longest to wait for a decision; 7 days by default. In milliseconds. */
                readonly timeout_ms?: number;
                /** @description How the run ends without a decision in time. `cancel_all`: as `timed_out`. `fail`: as `failed`. */
                readonly on_timeout?: ("cancel_all" | "fail") | null;
            } | null;
            /** @description The limits of this workflow's runs, tasks and calls that say none themselves. */
            readonly timeouts?: {
                /** @description The set of defaults and hard limits that applies where nothing is written: `standard`, `service` or `flow`. That of the deployment by default. */
                readonly preset?: ("standard" | "service" | "flow") | null;
                /** @description The longest that one attempt at a task may take. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly step?: string | number | null;
                /** @description The longest that one attempt at a task may take. In milliseconds. */
                readonly step_ms?: number | null;
                /** @description The longest that a run may take. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly flow?: string | number | null;
                /** @description The longest that a run may take. In milliseconds. */
                readonly flow_ms?: number | null;
                /** @description The longest that one call of a language model (`llm_call`) may take. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly llm_call?: string | number | null;
                /** @description The longest that one call of a language model (`llm_call`) may take. In milliseconds. */
                readonly llm_call_ms?: number | null;
                /** @description The longest that one call of another service (`http_request`, `service_call`, `mcp_tool`, `shell`) may take. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly tool?: string | number | null;
                /** @description The longest that one call of another service (`http_request`, `service_call`, `mcp_tool`, `shell`) may take. In milliseconds. */
                readonly tool_ms?: number | null;
                /**
                 * @description With `true` a sub-workflow may take at most the time that is left of this run.
                 * @default false
                 */
                readonly inherit_budget?: boolean | null;
                /**
                 * @description The fraction of a deadline, between 0 and 1, after which a `deadline_warning` is written to the events of the run.
                 * @default 0.8
                 */
                readonly warn_at?: number | null;
            } | null;
            /**
             * @description Whether `timeout` and `timeouts` of the workflow may exceed the hard limits of the preset.
             * @default false
             */
            readonly allow_exceed_hard?: boolean | null;
            /** @description Bounds of one run. A run that exceeds one of them fails with `limit_exceeded`. */
            readonly limits?: {
                /**
                 * @description How many tokens one attempt of a run may create.
                 * @default 10000
                 */
                readonly tokens_total?: number | null;
                /**
                 * @description How many tokens may exist at the same time.
                 * @default 1000
                 */
                readonly tokens_active?: number | null;
                /**
                 * @description How often one transition of a cycle may be taken on one path, where it has no `loop_config`.
                 * @default 1000
                 */
                readonly loop_iterations?: number | null;
            } | null;
            /** @description An event that starts runs of the newest version of this workflow. */
            readonly trigger?: {
                /** @description The name of the event. Its payload is the input of the run. */
                readonly event: string;
                /** @description Reserved: schedules are not supported yet. */
                readonly cron?: null;
                /** @description Reserved for schedules, which are not supported yet. */
                readonly timezone?: null;
            } | null;
            /** @description What happens to a token whose node has transitions, none of which matches. `fail`: it fails with `no_transition` and takes the node's failure transitions. `end`: its path ends, as after a node without transitions. */
            readonly on_no_match?: ("fail" | "end") | null;
            /** @description Whether `timeout` counts the time in which every token stands at a gate. `stops_at_gates`: it does not. `runs`: it does. */
            readonly clock?: ("stops_at_gates" | "runs") | null;
            /** @description Which ends of a run undo its completed work, by the `compensate` of its nodes, and how long that may take. */
            readonly compensation?: {
                /** @description The ends after which completed work is undone; all three by default. */
                readonly on?: readonly ("failed" | "timed_out" | "cancelled")[] | null;
                /** @description The longest that all compensations of a run may take together; 10 min by default. The end handlers of `on_end` have the same time. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string;
                /** @description The longest that all compensations of a run may take together; 10 min by default. The end handlers of `on_end` have the same time. In milliseconds. */
                readonly timeout_ms?: number;
            } | null;
            /** @description The addresses to which events of the runs are posted. */
            readonly notify?: readonly {
                /** @description The kinds of events that are posted to the address. */
                readonly on: readonly ("run_started" | "run_completed" | "run_compensating" | "run_failed" | "run_timed_out" | "run_cancelled" | "run_paused" | "run_resumed" | "run_extended" | "run_retried" | "run_restarted" | "token_created" | "token_dispatched" | "token_completed" | "token_failed" | "token_timed_out" | "token_cancelled" | "token_retried" | "fan_out_started" | "fan_in_started" | "fan_in_completed" | "sync_timed_out" | "gate_opened" | "gate_reminded" | "gate_decided" | "gate_timed_out" | "late_result_discarded" | "deadline_warning" | "signal_received" | "subworkflow_started" | "subworkflow_ended" | "subworkflow_paused" | "subworkflow_resumed" | "limit_exceeded" | "dispatch_rung_again" | "attempt_reaped")[];
                /** @description The address, `http` or `https`. Only `${secret.NAME}` may stand in it, no other expression. */
                readonly url: string;
                /** @description Further headers of each request. */
                readonly headers?: {
                    readonly [key: string]: string;
                } | null;
                /** @description The secret with which each request is signed: exactly one `${secret.NAME}`. */
                readonly secret?: string | null;
            }[] | null;
            /** @description Work that runs, one handler after the other, when a run is about to end. Its failure does not change the end. */
            readonly on_end?: readonly {
                /** @description The ends for which the handler runs; all by default. */
                readonly on?: readonly ("completed" | "failed" | "timed_out" | "cancelled")[] | null;
                /** @description The id of the task to run, of the workflow document or of the catalogue. */
                readonly task_id?: string | null;
                /** @description The version of the task; the newest when the run starts by default. Only with `task_id`. */
                readonly task_version?: number | null;
                /** @description The id of the action to run as a task of one step, of the workflow document or of the catalogue. */
                readonly action_id?: string | null;
                /** @description The version of the action; the newest when the run starts by default. Only with `action_id`. */
                readonly action_version?: number | null;
                /** @description The id of the workflow to run as a sub-workflow, in a run of its own. */
                readonly workflow_id?: string | null;
                /** @description The version of the workflow; the newest when the run starts by default. Only with `workflow_id`. */
                readonly workflow_version?: number | null;
                /** @description Only with `workflow_id`: what follows if the sub-workflow fails, times out or is cancelled. `propagate`: the work fails with its error. `catch`: the work completes with `{status, error, run_id}`. */
                readonly on_failure?: ("propagate" | "catch") | null;
                /** @description The input of the work: any JSON in which strings may hold `${...}`, over `input`, `state`, `output` and `run`; by default `run`, which also has `status`, `error` and `output` here. */
                readonly input_mapping?: unknown;
            }[] | null;
        };
        /** @description An action: one operation, such as a request or a check. */
        readonly action: {
            /** @description The id of the action, by which nodes and steps name it. */
            readonly id: string;
            /** @description The address of this schema, for editors. Curfew ignores it. */
            readonly $schema?: unknown;
            /** @description A name for people. It has no effect on runs. */
            readonly name?: string | null;
            /** @description A text for people. It has no effect on runs. */
            readonly description?: string | null;
            /** @description The limit, the retries and the circuit breaker of the calls. */
            readonly execution?: {
                /** @description The longest that one call may take, without the retries around it; that of the preset by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string | null;
                /** @description The longest that one call may take, without the retries around it; that of the preset by default. In milliseconds. */
                readonly timeout_ms?: number | null;
                /** @description What follows a call that exceeds `timeout`. `fail`: the step fails. `retry`: the call is made again. */
                readonly on_timeout?: ("fail" | "retry") | null;
                readonly retry_policy?: components["schemas"]["retry_policy"] | null;
                /** @description How the result arrives. `sync`: in the answer of the call. `async`: later, by a request to the callback URL that the call passes on; only for `http_request` and `service_call`. */
                readonly mode?: ("sync" | "async") | null;
                /** @description The key of the circuit breaker that the calls go through. All runs and workflows share a breaker by its key. */
                readonly breaker?: string | null;
            } | null;
            /** @description A JSON Schema, draft 2020-12, that the input of the step must fit. */
            readonly input_schema?: components["schemas"]["schema"] | null;
            /** @description A JSON Schema, draft 2020-12, that the result must fit. */
            readonly output_schema?: components["schemas"]["schema"] | null;
        } & ({
            /** @constant */
            readonly kind: "http_request";
            readonly implementation: components["schemas"]["http_request"];
        } | {
            /** @constant */
            readonly kind: "service_call";
            readonly implementation: components["schemas"]["service_call"];
        } | {
            /** @constant */
            readonly kind: "update_context";
            readonly implementation: components["schemas"]["update_context"];
        } | {
            /** @constant */
            readonly kind: "assert";
            readonly implementation: components["schemas"]["assert"];
        } | {
            /** @constant */
            readonly kind: "llm_call";
            readonly implementation: components["schemas"]["llm_call"];
        } | {
            /** @constant */
            readonly kind: "mcp_tool";
            readonly implementation: components["schemas"]["mcp_tool"];
        } | {
            /** @constant */
            readonly kind: "shell";
            readonly implementation: components["schemas"]["shell"];
        } | {
            /** @constant */
            readonly kind: "workflow_call";
            readonly implementation: components["schemas"]["workflow_call"];
        } | {
            /** @constant */
            readonly kind: "emit_event";
            readonly implementation: components["schemas"]["emit_event"];
        });
        /** @description Fails with class `assertion` unless a condition holds. */
        readonly assert: {
            /** @description An expression that must be true, without `${}`. */
            readonly condition: string;
            /** @description The message of the failure. */
            readonly message?: unknown;
        };
        /** @description The work that undoes what a node did: exactly one of `task_id`, `action_id` and `workflow_id`. */
        readonly compensate: {
            /** @description The id of the task to run, of the workflow document or of the catalogue. */
            readonly task_id?: string | null;
            /** @description The version of the task; the newest when the run starts by default. Only with `task_id`. */
            readonly task_version?: number | null;
            /** @description The id of the action to run as a task of one step, of the workflow document or of the catalogue. */
            readonly action_id?: string | null;
            /** @description The version of the action; the newest when the run starts by default. Only with `action_id`. */
            readonly action_version?: number | null;
            /** @description The id of the workflow to run as a sub-workflow, in a run of its own. */
            readonly workflow_id?: string | null;
            /** @description The version of the workflow; the newest when the run starts by default. Only with `workflow_id`. */
            readonly workflow_version?: number | null;
            /** @description Only with `workflow_id`: what follows if the sub-workflow fails, times out or is cancelled. `propagate`: the work fails with its error. `catch`: the work completes with `{status, error, run_id}`. */
            readonly on_failure?: ("propagate" | "catch") | null;
            /** @description The input of the work: any JSON in which strings may hold `${...}`, over `result`, `input`, `state` and `run`; by default `result`, which is what the node returned. */
            readonly input_mapping?: unknown;
            /** @description The longest that one attempt at the compensation may take; by default the limit of the task, of the action or of the preset applies. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description The longest that one attempt at the compensation may take; by default the limit of the task, of the action or of the preset applies. In milliseconds. */
            readonly timeout_ms?: number | null;
        };
        /** @description Emits an event, which starts the workflows that have it as their `trigger`. */
        readonly emit_event: {
            /** @description The name of the event. */
            readonly name: string;
            /** @description The input of the runs that the event starts; null by default. */
            readonly payload?: unknown;
        };
        /** @description A gate: the token waits until a person decides. The result is `{choice, input, comment, by}`. */
        readonly gate: {
            /** @description What the person is asked: any JSON in which strings may hold `${...}`. */
            readonly prompt?: unknown;
            /**
             * @description The decisions to choose from, each of 1 to 64 bytes.
             * @default [
             *       "approve",
             *       "reject"
             *     ]
             */
            readonly choices?: readonly string[] | null;
            /** @description A JSON Schema, draft 2020-12, that the `input` of a decision must fit. */
            readonly input_schema?: components["schemas"]["schema"] | null;
            /** @description How long the gate waits for a decision. By default the `timeout` of the node applies, and without one there is no limit. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description How long the gate waits for a decision. By default the `timeout` of the node applies, and without one there is no limit. In milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What happens without a decision within `timeout`. `fail`: the node takes its transitions for timeouts. `approve` and `reject`: the gate is decided so, and must have that choice. `cancel_all`: the run ends as `timed_out`. */
            readonly on_timeout?: ("fail" | "approve" | "reject" | "cancel_all") | null;
            /**
             * @description When reminders are due, as fractions of `timeout` between 0 and 1: after 0.75 three quarters of the time have passed.
             * @default [
             *       0.75
             *     ]
             */
            readonly remind_at?: readonly number[] | null;
            /**
             * @description With `true` the caller that started the run may not decide.
             * @default false
             */
            readonly four_eyes?: boolean | null;
        };
        /** @description Sends a request to a URL. The result is `{status, headers, body}`. */
        readonly http_request: {
            /** @description The URL to call, `http` or `https`, without a user and a password in it. */
            readonly url: string;
            /** @description The HTTP method of the request; GET by default. */
            readonly method?: string | null;
            /** @description The headers of the request, as an object. A header whose value is null is left out. */
            readonly headers?: ({
                readonly [key: string]: unknown;
            } | string) | null;
            /** @description Parameters that are added to the URL, as an object. A list repeats its name, and a null is left out. */
            readonly query?: (Record<string, unknown> | string) | null;
            /** @description The body of the request. A string is sent as text, any other JSON as JSON. GET and HEAD have none. */
            readonly body?: unknown;
            /** @description The status, or list of statuses, that counts as success; 200 to 299 by default. */
            readonly expect_status?: (number | readonly number[]) | null;
        };
        /** @description An action: one operation, such as a request or a check. */
        readonly inline_action: {
            /** @description The id of the action. It may be left out here. */
            readonly id?: string | null;
            /** @description The address of this schema, for editors. Curfew ignores it. */
            readonly $schema?: unknown;
            /** @description A name for people. It has no effect on runs. */
            readonly name?: string | null;
            /** @description A text for people. It has no effect on runs. */
            readonly description?: string | null;
            /** @description The limit, the retries and the circuit breaker of the calls. */
            readonly execution?: {
                /** @description The longest that one call may take, without the retries around it; that of the preset by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string | null;
                /** @description The longest that one call may take, without the retries around it; that of the preset by default. In milliseconds. */
                readonly timeout_ms?: number | null;
                /** @description What follows a call that exceeds `timeout`. `fail`: the step fails. `retry`: the call is made again. */
                readonly on_timeout?: ("fail" | "retry") | null;
                readonly retry_policy?: components["schemas"]["retry_policy"] | null;
                /** @description How the result arrives. `sync`: in the answer of the call. `async`: later, by a request to the callback URL that the call passes on; only for `http_request` and `service_call`. */
                readonly mode?: ("sync" | "async") | null;
                /** @description The key of the circuit breaker that the calls go through. All runs and workflows share a breaker by its key. */
                readonly breaker?: string | null;
            } | null;
            /** @description A JSON Schema, draft 2020-12, that the input of the step must fit. */
            readonly input_schema?: components["schemas"]["schema"] | null;
            /** @description A JSON Schema, draft 2020-12, that the result must fit. */
            readonly output_schema?: components["schemas"]["schema"] | null;
        } & ({
            /** @constant */
            readonly kind: "http_request";
            readonly implementation: components["schemas"]["http_request"];
        } | {
            /** @constant */
            readonly kind: "service_call";
            readonly implementation: components["schemas"]["service_call"];
        } | {
            /** @constant */
            readonly kind: "update_context";
            readonly implementation: components["schemas"]["update_context"];
        } | {
            /** @constant */
            readonly kind: "assert";
            readonly implementation: components["schemas"]["assert"];
        } | {
            /** @constant */
            readonly kind: "llm_call";
            readonly implementation: components["schemas"]["llm_call"];
        } | {
            /** @constant */
            readonly kind: "mcp_tool";
            readonly implementation: components["schemas"]["mcp_tool"];
        } | {
            /** @constant */
            readonly kind: "shell";
            readonly implementation: components["schemas"]["shell"];
        } | {
            /** @constant */
            readonly kind: "workflow_call";
            readonly implementation: components["schemas"]["workflow_call"];
        } | {
            /** @constant */
            readonly kind: "emit_event";
            readonly implementation: components["schemas"]["emit_event"];
        });
        /** @description Asks a language model. The result is `{text, tool_calls, usage, finish_reason, model}`, with `json` where `response_format` asks for it. */
        readonly llm_call: {
            /**
             * @description Whose API is called. `openai` also stands for any server with chat completions, `workers_ai` for the executor's binding AI.
             * @enum {string}
             */
            readonly provider: "openai" | "anthropic" | "workers_ai";
            /** @description The name of the model, as the provider spells it. */
            readonly model: string;
            /** @description A single message of the user. Write either this or `messages`. */
            readonly prompt?: string | null;
            /** @description The conversation so far, as a list of messages. Write either this or `prompt`. */
            readonly messages?: (readonly (({
                /** @description Who the message is from. */
                readonly role: ("system" | "developer" | "user" | "assistant" | "tool") | string;
                /** @description The text of the message, or its parts in the form of the provider. */
                readonly content?: unknown;
                /** @description The tools that the model called in this message: `[{id, name, arguments}]`. */
                readonly tool_calls?: unknown;
                /** @description In a message of a tool: the `id` of the call that it answers. */
                readonly tool_call_id?: unknown;
            } | unknown | unknown) | string)[] | string) | null;
            /** @description Instructions for the model that come before the messages. */
            readonly system?: string | null;
            /** @description The address of the provider's API; the provider's own by default. Not with `workers_ai`. */
            readonly base_url?: string | null;
            /** @description The key of the provider's API, as a `${secret.NAME}`. Not with `workers_ai`. */
            readonly api_key?: string | null;
            /** @description Further headers of the request, as an object. A header whose value is null is left out. Not with `workers_ai`. */
            readonly headers?: ({
                readonly [key: string]: unknown;
            } | string) | null;
            /** @description The most tokens that the answer may have. By default 4096 with `anthropic`, else as the provider decides. */
            readonly max_tokens?: (number | string) | null;
            /** @description How random the answer is, from 0 (nearly always the same) to 2. The provider's default applies without it. */
            readonly temperature?: (number | string) | null;
            /** @description The model chooses among the likeliest tokens whose probabilities add up to this share. The provider's default applies without it. */
            readonly top_p?: (number | string) | null;
            /** @description A text, or a list of texts, at which the answer ends. */
            readonly stop?: (string | readonly string[]) | null;
            /** @description The tools that the model may ask for. Curfew does not call them; the calls are in `tool_calls` of the result. */
            readonly tools?: (readonly (Record<string, unknown> | string)[] | string) | null;
            /** @description Whether the model asks for a tool: `auto` leaves it to the model, `none` forbids it, `required` demands one, and `{name}` demands that tool. */
            readonly tool_choice?: ((Record<string, unknown> | ("auto" | "none" | "required")) | string) | null;
            /** @description The form that the answer must have; plain text by default. */
            readonly response_format?: {
                /**
                 * @description `text`: any text. `json_object`: a JSON object. `json_schema`: JSON that fits `schema`. With the last two the result has the parsed answer in `json`.
                 * @enum {string}
                 */
                readonly type: "text" | "json_object" | "json_schema";
                /** @description The JSON Schema that the answer must fit. Required with `json_schema`, refused elsewhere. */
                readonly schema?: components["schemas"]["schema"] | null;
            } | null;
        };
        /** @description Calls a tool of an MCP server. The result is `{content, structured, text, is_error}`. */
        readonly mcp_tool: {
            /** @description The URL of the server, which speaks MCP over Streamable HTTP. */
            readonly server_url: string;
            /** @description The name of the tool. */
            readonly tool: string;
            /** @description The headers of the request, as an object. A header whose value is null is left out. */
            readonly headers?: ({
                readonly [key: string]: unknown;
            } | string) | null;
            /** @description The arguments of the tool, as an object; the input of the step by default. */
            readonly arguments?: (Record<string, unknown> | string) | null;
        };
        /** @description A node: what happens when a token comes there. It has exactly one of `task_id`, `action_id`, `workflow_id`, `gate` and `wait`, or none of them. */
        readonly node: {
            /** @description The id of the node, unique in the workflow. Expressions read its result as `state.<id>`. */
            readonly id: string;
            /** @description A name for people. It has no effect on runs. */
            readonly name?: string | null;
            /** @description A text for people. It has no effect on runs. */
            readonly description?: string | null;
            /** @description The id of the task to run, of the workflow document or of the catalogue. */
            readonly task_id?: string | null;
            /** @description The version of the task; the newest when the run starts by default. Only with `task_id`. */
            readonly task_version?: number | null;
            /** @description The id of the action to run as a task of one step, of the workflow document or of the catalogue. */
            readonly action_id?: string | null;
            /** @description The version of the action; the newest when the run starts by default. Only with `action_id`. */
            readonly action_version?: number | null;
            /** @description The id of the workflow to run as a sub-workflow, in a run of its own. */
            readonly workflow_id?: string | null;
            /** @description The version of the workflow; the newest when the run starts by default. Only with `workflow_id`. */
            readonly workflow_version?: number | null;
            /** @description Only with `workflow_id`: what follows if the sub-workflow fails, times out or is cancelled. `propagate`: the work fails with its error. `catch`: the work completes with `{status, error, run_id}`. */
            readonly on_failure?: ("propagate" | "catch") | null;
            /** @description The input of the work: any JSON in which strings may hold `${...}`, over `input`, `state` and `output`; the input of the run by default. */
            readonly input_mapping?: unknown;
            readonly gate?: components["schemas"]["gate"] | null;
            readonly wait?: components["schemas"]["wait"] | null;
            /** @description Where the result goes, as `{target: value}` with the result as `result`. By default it goes to `state.<node id>`, in a branch of a fan-out to `_branch.output`; `{}` drops it. */
            readonly output_mapping?: Record<string, unknown> | null;
            /** @description The longest that one attempt may take, or how long a gate waits. By default the limit of the task, of the action or of the preset applies, and a gate waits without a limit. Written like "500ms", "30s", "2m" or "1h30m". With "adaptive" it is learnt from the durations of the last runs. */
            readonly timeout?: string | "adaptive" | null;
            /** @description The longest that one attempt may take, or how long a gate waits. By default the limit of the task, of the action or of the preset applies, and a gate waits without a limit. In milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What follows an attempt that exceeds `timeout`. `fail`: the node takes its transitions for timeouts. `retry`: another attempt begins, `max_retries` times at most. By default `fail`, or what the only action says where its call has no more time than the attempt. */
            readonly on_timeout?: ("fail" | "retry") | null;
            /**
             * @description How many further attempts may follow attempts that timed out, where `on_timeout` is `retry`.
             * @default 3
             */
            readonly max_retries?: number | null;
            /**
             * @description Whether the limits of this node and of what it runs may exceed the hard limits of the preset.
             * @default false
             */
            readonly allow_exceed_hard?: boolean | null;
            /** @description How the task reaches an executor. `auto`: chosen for each attempt. `inline`: inside the coordinator, only for tasks that make no call. `direct`: a call that is held open. `queue`: a message, for work of minutes; only where the deployment has the queue on. That of the task applies by default. */
            readonly dispatch?: ("auto" | "inline" | "direct" | "queue") | null;
            /** @description Classes of failures after which a person decides at a gate (`retry`, `skip` or `fail`) instead of the node failing; those of the preset by default. */
            readonly escalate_on?: readonly ("network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown")[] | null;
            /** @description What happens to a token whose node has transitions, none of which matches. `fail`: it fails with `no_transition` and takes the node's failure transitions. `end`: its path ends, as after a node without transitions. That of the workflow applies by default. */
            readonly on_no_match?: ("fail" | "end") | null;
            readonly compensate?: components["schemas"]["compensate"] | null;
        };
        /** @description How often, and after which delays, a call that failed is made again. */
        readonly retry_policy: {
            /** @description The most calls of the step, the first one included. By default it depends on the class of the failure. */
            readonly max_attempts?: number | null;
            /** @description How the delay grows. `none`: no delay. `linear`: `initial_delay` times the number of the retry. `exponential`: `initial_delay`, doubled with each further retry. */
            readonly backoff?: ("none" | "linear" | "exponential") | null;
            /** @description How long to wait before the first retry; 1 s by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly initial_delay?: string | null;
            /** @description How long to wait before the first retry; 1 s by default. In milliseconds. */
            readonly initial_delay_ms?: number | null;
            /** @description The longest that a delay may become; 1 min by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly max_delay?: string | null;
            /** @description The longest that a delay may become; 1 min by default. In milliseconds. */
            readonly max_delay_ms?: number | null;
            /**
             * @description Whether a random part of up to half of the delay is added to it.
             * @default true
             */
            readonly jitter?: boolean | null;
            /** @description The classes of failures after which the call is made again, or `*` for all. Timeouts follow `on_timeout` instead, and `permanent` failures are never retried. */
            readonly retry_on?: readonly ("network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "breaker_open" | "unknown" | "*")[] | null;
            /** @description The longest that all calls of the step and the delays between them may take together; no limit by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly total_timeout?: string | null;
            /** @description The longest that all calls of the step and the delays between them may take together; no limit by default. In milliseconds. */
            readonly total_timeout_ms?: number | null;
        };
        /** @description A JSON Schema, draft 2020-12, without what needs another document. `true` allows every value, `false` none. */
        readonly schema: Record<string, unknown> | boolean;
        /** @description Sends a request to a Worker that is bound to the executor. The result is its JSON answer. */
        readonly service_call: {
            /** @description The name of the service binding, as in the executor's wrangler file. */
            readonly binding: string;
            /** @description The path of the request; `/` by default. */
            readonly path?: string | null;
            /** @description The HTTP method of the request; POST by default. */
            readonly method?: string | null;
            /** @description The headers of the request, as an object. A header whose value is null is left out. */
            readonly headers?: ({
                readonly [key: string]: unknown;
            } | string) | null;
            /** @description The body of the request; the input of the step by default. A string is sent as text, any other JSON as JSON. */
            readonly body?: unknown;
        };
        /** @description Has a runner service execute a command. The result is `{exit_code, stdout, stderr, truncated}`. */
        readonly shell: {
            /** @description The program to run, without its arguments. */
            readonly command: string;
            /** @description The runner, by the name of a service binding of the executor. Write either this or `url`. */
            readonly binding?: string | null;
            /** @description The runner, by its URL. Write either this or `binding`. */
            readonly url?: string | null;
            /** @description The headers of the request, as an object. A header whose value is null is left out. */
            readonly headers?: ({
                readonly [key: string]: unknown;
            } | string) | null;
            /** @description The arguments of the command, as a list. A null is left out. */
            readonly args?: (readonly unknown[] | string) | null;
            /** @description Variables of the command's environment, as an object. A null is left out. */
            readonly env?: (Record<string, unknown> | string) | null;
            /** @description The directory in which the command runs; the runner's own by default. */
            readonly cwd?: string | null;
            /** @description What the command reads from its standard input; nothing by default. */
            readonly stdin?: unknown;
            /** @description The exit code, or list of exit codes, that counts as success; 0 by default. */
            readonly expect_exit?: (number | readonly number[]) | null;
        };
        /** @description A step of a task: one action, with what goes into it and out of it. */
        readonly step: {
            /** @description The name of the step, unique in the task; `step-1`, `step-2`, ... by position by default. */
            readonly ref?: string | null;
            /** @description Steps run in the order of these numbers; the position in the list by default. */
            readonly ordinal?: number | null;
            /** @description The id of an action of the workflow document or of the catalogue. Write either this or `action`. */
            readonly action_id?: string | null;
            /** @description The version of the action that `action_id` names; the newest when the run starts by default. */
            readonly action_version?: number | null;
            /** @description An action, written here. Write either this or `action_id`. */
            readonly action?: components["schemas"]["inline_action"] | null;
            /** @description The input of the action, over `input`, `state` and `output` of the task; the input of the task by default. */
            readonly input_mapping?: unknown;
            /** @description Where the result goes, as `{target: value}` with the result as `result`. A target is `state.x`, `output.y`, or `y` for `output.y`; `state.<ref>` by default. */
            readonly output_mapping?: Record<string, unknown> | null;
            /** @description Whether the step runs: an expression that skips it if false, or `{if, then, else}`. */
            readonly condition?: (string | {
                /** @description The expression that decides, without `${}`. */
                readonly if: string;
                /** @description What happens if `if` is true. `continue`: the step runs. `skip`: it does not, and the next step follows. `succeed`: the task ends here as completed. `fail`: the task fails with `condition_failed`. */
                readonly then?: ("continue" | "skip" | "succeed" | "fail") | null;
                /** @description What happens if `if` is false. `continue`: the step runs. `skip`: it does not, and the next step follows. `succeed`: the task ends here as completed. `fail`: the task fails with `condition_failed`. */
                readonly else?: ("continue" | "skip" | "succeed" | "fail") | null;
            }) | null;
            /** @description What follows a failure of the step. `abort`: the task fails. `retry`: the task begins again from its first step, as `retry` of the task allows. `continue`: the error is added to `state._errors` and the next step follows. */
            readonly on_failure?: ("abort" | "retry" | "continue") | null;
            /** @description The longest that one call may take, instead of the `timeout` of the action. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout_override?: string | null;
            /** @description The longest that one call may take, instead of the `timeout` of the action. In milliseconds. */
            readonly timeout_override_ms?: number | null;
            /**
             * @description Whether this step and its action may exceed the hard limits of the preset.
             * @default false
             */
            readonly allow_exceed_hard?: boolean | null;
        };
        /** @description A join: it waits for the branches of a fan-out and goes on with one token. */
        readonly synchronization: {
            /** @description The group of branches to join: the `sibling_group` of the transitions that create them, or the id of the one transition that fans out. */
            readonly sibling_group: string;
            /** @description How many branches must arrive. `all`: every one. `any`: the first one is enough. `{"m_of_n": 3}`: three of them. */
            readonly strategy?: (("all" | "any") | {
                /** @description How many branches must arrive. */
                readonly m_of_n: number;
            }) | null;
            /** @description How long to wait for the other branches, from the first arrival. By default it is derived from the limits in the branches, 30 min at most; null is no limit. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description How long to wait for the other branches, from the first arrival. By default it is derived from the limits in the branches, 30 min at most; null is no limit. In milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What happens if too few branches have arrived within `timeout`. `proceed_with_available`: the join goes on with those that completed, and fails if none did. `fail`: all branches time out and the join fails. */
            readonly on_timeout?: ("proceed_with_available" | "fail") | null;
            /** @description Only with the strategy `all`: what happens if a branch ended without completing. `proceed_with_available`: the join goes on with the others once all have arrived or ended. `fail`: the join fails. */
            readonly on_branch_failure?: ("proceed_with_available" | "fail") | null;
            /** @description What happens to branches that still run when the join goes on. `abandon`: they run on and their results are dropped. `cancel`: their calls are aborted. `allow_late_merge`: they run on and are merged when they arrive. */
            readonly on_early_complete?: ("abandon" | "cancel" | "allow_late_merge") | null;
            /** @description How the results of the branches are put together, and where they go. Without it they are not merged. */
            readonly merge?: {
                /** @description What is taken of each branch: an expression over `_branch` (`index`, `total`, `item`, `output`), without `${}`; `_branch.output` by default. */
                readonly source?: string | null;
                /** @description Where the merged results go: `state.<name>`, `output.<name>` or, in a nested join, `_branch.output`. */
                readonly target: string;
                /** @description What the target becomes. `append`: a list of the results in the order of branches, after what it already holds. `concat`: the same, with results that are lists flattened by one level. `merge_object`: an object with the fields of all results, later branches winning. `keyed_by_branch`: an object with the results under "0", "1" and so on. `last_wins`: the result of the branch that arrived last. */
                readonly strategy?: ("append" | "concat" | "merge_object" | "keyed_by_branch" | "last_wins") | null;
            } | null;
        };
        /** @description A task: steps that one executor runs from start to end. */
        readonly task: {
            /** @description The id of the task, by which nodes name it. */
            readonly id: string;
            /** @description The address of this schema, for editors. Curfew ignores it. */
            readonly $schema?: unknown;
            /** @description A name for people. It has no effect on runs. */
            readonly name?: string | null;
            /** @description A text for people. It has no effect on runs. */
            readonly description?: string | null;
            /** @description The steps, which run one after the other. */
            readonly steps: readonly components["schemas"]["step"][];
            /** @description The longest that one attempt at the whole task may take; only the limit of the node applies by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description The longest that one attempt at the whole task may take; only the limit of the node applies by default. In milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description How the task reaches an executor. `auto`: chosen for each attempt. `inline`: inside the coordinator, only for tasks that make no call. `direct`: a call that is held open. `queue`: a message, for work of minutes; only where the deployment has the queue on. */
            readonly dispatch?: ("auto" | "inline" | "direct" | "queue") | null;
            /** @description How often the whole task is tried, where a step fails that has `on_failure: "retry"`. */
            readonly retry?: {
                /**
                 * @description The most attempts at the task, the first one included.
                 * @default 3
                 */
                readonly max_attempts?: number | null;
                /** @description How the delay grows. `none`: no delay. `linear`: `initial_delay` times the number of the retry. `exponential`: `initial_delay`, doubled with each further retry. */
                readonly backoff?: ("none" | "linear" | "exponential") | null;
                /** @description How long to wait before the second attempt; 1 s by default. Without effect if `backoff` is `none`. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly initial_delay?: string | null;
                /** @description How long to wait before the second attempt; 1 s by default. Without effect if `backoff` is `none`. In milliseconds. */
                readonly initial_delay_ms?: number | null;
                /** @description The longest that a delay may become; 1 min by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly max_delay?: string | null;
                /** @description The longest that a delay may become; 1 min by default. In milliseconds. */
                readonly max_delay_ms?: number | null;
            } | null;
            /** @description A JSON Schema, draft 2020-12, that the input of the task must fit. */
            readonly input_schema?: components["schemas"]["schema"] | null;
            /** @description A JSON Schema, draft 2020-12, that the output of the task must fit. */
            readonly output_schema?: components["schemas"]["schema"] | null;
        };
        /** @description A transition from one node to another. */
        readonly transition: {
            /** @description The id of the transition, unique in the workflow; `t1`, `t2`, ... by position by default. */
            readonly id?: string | null;
            /** @description The id of the node that the transition leaves. */
            readonly from_node_id: string;
            /** @description The id of the node that the transition leads to. */
            readonly to_node_id: string;
            /** @description How the work of the node must have ended for this transition to be taken. `success`: it completed. `failure`: it failed, with all retries spent. `timeout`: it exceeded its limit. */
            readonly on?: ("success" | "failure" | "timeout") | null;
            /**
             * @description Transitions with the lowest number are tried first. All matching ones of that number are taken, and later numbers are not looked at.
             * @default 0
             */
            readonly priority?: number | null;
            /** @description An expression that must be true for the transition to be taken, without `${}`; always true by default. */
            readonly condition?: string | null;
            /** @description How often the transition may be taken on one path. It counts only where the transition is part of a cycle. */
            readonly loop_config?: {
                /** @description The most times that the transition may be taken on one path. Then it no longer matches. */
                readonly max_iterations: number;
            } | null;
            /** @description How many tokens the transition creates instead of one, which is a fan-out. */
            readonly spawn_count?: number | null;
            /** @description The transition creates one token for each item of a list, which is a fan-out. */
            readonly foreach?: {
                /** @description An expression that gives a list of at most 1 000 items, without `${}`. */
                readonly collection: string;
                /** @description The name of the item in expressions of the branch. */
                readonly item_var?: string | null;
            } | null;
            /** @description The name of the group that the created tokens belong to, for the join; by default the id of the transition, if it fans out. */
            readonly sibling_group?: string | null;
            readonly synchronization?: components["schemas"]["synchronization"] | null;
        };
        /** @description Writes to the `state` and `output` of the task, without a call. */
        readonly update_context: {
            /** @description What to write, as `{target: value}`. A target is `state.x`, `output.y`, or `y` for `output.y`. */
            readonly set: Record<string, unknown>;
        };
        /** @description A wait for a moment or a signal: exactly one of `sleep`, `until` and `signal`. */
        readonly wait: {
            /** @description How long to wait, or one `${...}` that gives a duration or milliseconds when a token comes here. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly sleep?: string;
            /** @description How long to wait, or one `${...}` that gives a duration or milliseconds when a token comes here. In milliseconds. */
            readonly sleep_ms?: number | string;
            /** @description The moment at which to go on: Unix milliseconds, ISO 8601 with its offset such as "2026-11-16T09:30:00Z", or a `${...}` that gives one. */
            readonly until?: (string | number) | null;
            /** @description The name of the signal to wait for. The result is the body that was sent with it. */
            readonly signal?: string | null;
            /** @description Only with `signal`: the longest to wait for it; no limit by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description Only with `signal`: the longest to wait for it; no limit by default. In milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description Only with `signal`: what happens if it does not come within `timeout`. `fail`: the node takes its transitions for timeouts. `continue`: the node completes with the result null. */
            readonly on_timeout?: ("fail" | "continue") | null;
        };
        /** @description Runs another workflow, as a node with `workflow_id` does. The result is the output of that run. */
        readonly workflow_call: {
            /** @description The id of the workflow to run. */
            readonly workflow_id: string;
            /** @description The version of the workflow; the newest when the run starts by default. */
            readonly version?: number | null;
            /** @description What follows a failed run of that workflow. `propagate`: the step fails with its error. `catch`: the step completes with `{status, error, run_id}`. */
            readonly on_failure?: ("propagate" | "catch") | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
