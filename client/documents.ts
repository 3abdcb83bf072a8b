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
            /** @description A name for people. */
            readonly name?: string | null;
            /** @description A text for people. */
            readonly description?: string | null;
            /** @description Tags of 1 to 64 bytes; runs can be listed by them. */
            readonly tags?: readonly string[] | null;
            /** @description The nodes. */
            readonly nodes: readonly components["schemas"]["node"][];
            /** @description The transitions. */
            readonly transitions?: readonly components["schemas"]["transition"][] | null;
            /** @description The node where the first token is created; the first one by default. */
            readonly initial_node_id?: string | null;
            /** @description Tasks, written here. They are used before those of the catalogue. */
            readonly tasks?: readonly components["schemas"]["task"][] | null;
            /** @description Actions, written here. They are used before those of the catalogue. */
            readonly actions?: readonly components["schemas"]["action"][] | null;
            /** @description What the input of a start must fit. A JSON Schema, draft 2020-12. */
            readonly input_schema?: (Record<string, unknown> | boolean) | null;
            /** @description What the output of a run must fit. A JSON Schema, draft 2020-12. */
            readonly output_schema?: (Record<string, unknown> | boolean) | null;
            /** @description The output of a run, from `input`, `state` and `output`; `output` by default. */
            readonly output_mapping?: unknown;
            /** @description The longest that a run may take; that of the preset by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description The longest that a run may take; that of the preset by default. Milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What happens then. `human_gate`: a person is asked. */
            readonly on_timeout?: ("human_gate" | "cancel_all" | "fail") | null;
            /** @description How long the gate of `human_gate` waits for a person. */
            readonly gate?: {
                /** @description How long it waits; 7 days by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string;
                /** @description How long it waits; 7 days by default. Milliseconds. */
                readonly timeout_ms?: number;
                /** @description What happens then. `cancel_all`: the run ends as `timed_out`. */
                readonly on_timeout?: ("cancel_all" | "fail") | null;
            } | null;
            /** @description Defaults for the steps of this workflow. */
            readonly timeouts?: {
                /** @description Where the other limits come from; that of the deployment by default. */
                readonly preset?: ("standard" | "service" | "flow") | null;
                /** @description The limit of a task. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly step?: string | number | null;
                /** @description The limit of a task. Milliseconds. */
                readonly step_ms?: number | null;
                /** @description The limit of a run. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly flow?: string | number | null;
                /** @description The limit of a run. Milliseconds. */
                readonly flow_ms?: number | null;
                /** @description The limit of a call of a language model. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly llm_call?: string | number | null;
                /** @description The limit of a call of a language model. Milliseconds. */
                readonly llm_call_ms?: number | null;
                /** @description The limit of a call of a tool. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly tool?: string | number | null;
                /** @description The limit of a call of a tool. Milliseconds. */
                readonly tool_ms?: number | null;
                /**
                 * @description Whether sub-workflows are limited to the time that is left of the run.
                 * @default false
                 */
                readonly inherit_budget?: boolean | null;
                /**
                 * @description The fraction of a deadline after which a warning is written.
                 * @default 0.8
                 */
                readonly warn_at?: number | null;
            } | null;
            /**
             * @description Whether the limits at the top of the workflow may exceed the hard limits of the preset.
             * @default false
             */
            readonly allow_exceed_hard?: boolean | null;
            /** @description Bounds of one run. */
            readonly limits?: {
                /**
                 * @description Tokens that one attempt of a run may create.
                 * @default 10000
                 */
                readonly tokens_total?: number | null;
                /**
                 * @description Tokens that may exist at the same time.
                 * @default 1000
                 */
                readonly tokens_active?: number | null;
                /**
                 * @description How often one transition of a cycle may fire on one path.
                 * @default 1000
                 */
                readonly loop_iterations?: number | null;
            } | null;
            /** @description An event that starts runs. */
            readonly trigger?: {
                /** @description The name of the event. Its payload is the input. */
                readonly event: string;
                /** @description Reserved: schedules are not supported yet. */
                readonly cron?: null;
                /** @description Reserved for schedules. */
                readonly timezone?: unknown;
            } | null;
            /** @description What a node does whose transitions all do not match. */
            readonly on_no_match?: ("fail" | "end") | null;
            /** @description Whether the limit of a run counts the time in which every token stands in front of a person. */
            readonly clock?: ("stops_at_gates" | "runs") | null;
            /** @description Which ends undo completed work, and for how long. */
            readonly compensation?: {
                /** @description The ends that compensate; all three by default. */
                readonly on?: readonly ("failed" | "timed_out" | "cancelled")[] | null;
                /** @description The longest that all compensations may take together; 10 min by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string;
                /** @description The longest that all compensations may take together; 10 min by default. Milliseconds. */
                readonly timeout_ms?: number;
            } | null;
            /** @description Where events of its runs are posted. */
            readonly notify?: readonly {
                /** @description The kinds of events that are posted. */
                readonly on: readonly ("run_started" | "run_completed" | "run_compensating" | "run_failed" | "run_timed_out" | "run_cancelled" | "run_paused" | "run_resumed" | "run_extended" | "run_retried" | "run_restarted" | "token_created" | "token_dispatched" | "token_completed" | "token_failed" | "token_timed_out" | "token_cancelled" | "token_retried" | "fan_out_started" | "fan_in_started" | "fan_in_completed" | "sync_timed_out" | "gate_opened" | "gate_reminded" | "gate_decided" | "gate_timed_out" | "late_result_discarded" | "deadline_warning" | "signal_received" | "subworkflow_started" | "subworkflow_ended" | "subworkflow_paused" | "subworkflow_resumed" | "limit_exceeded" | "dispatch_rung_again" | "attempt_reaped")[];
                /** @description An address with `http` or `https`. It is constant, but `${secret.NAME}` may stand in it. */
                readonly url: string;
                /** @description Headers of each request. */
                readonly headers?: {
                    readonly [key: string]: string;
                } | null;
                /** @description Exactly one `${secret.NAME}`: the secret that signs. */
                readonly secret?: string | null;
            }[] | null;
            /** @description Work that runs when a run is about to end. */
            readonly on_end?: readonly {
                /** @description The ends that it is for; all by default. */
                readonly on?: readonly ("completed" | "failed" | "timed_out" | "cancelled")[] | null;
                /** @description The task to run. */
                readonly task_id?: string | null;
                /** @description Its version; the newest by default. */
                readonly task_version?: number | null;
                /** @description The action to run, as a task of one step. */
                readonly action_id?: string | null;
                /** @description Its version; the newest by default. */
                readonly action_version?: number | null;
                /** @description The workflow to run as a sub-workflow. */
                readonly workflow_id?: string | null;
                /** @description Its version; the newest by default. */
                readonly workflow_version?: number | null;
                /** @description Only with `workflow_id`. `catch`: a failed sub-workflow completes the node with its error. */
                readonly on_failure?: ("propagate" | "catch") | null;
                /** @description The input of the work; that of the run by default. */
                readonly input_mapping?: unknown;
            }[] | null;
        };
        /** @description An action: one operation. */
        readonly action: {
            /** @description The id of the action. */
            readonly id: string;
            /** @description The address of this schema, for editors. Curfew ignores it. */
            readonly $schema?: unknown;
            /** @description A name for people. */
            readonly name?: string | null;
            /** @description A text for people. */
            readonly description?: string | null;
            /** @description Limits, retries and the breaker. */
            readonly execution?: {
                /** @description The longest that one call may take. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string | null;
                /** @description The longest that one call may take. Milliseconds. */
                readonly timeout_ms?: number | null;
                /** @description Whether a call that timed out is made again. */
                readonly on_timeout?: ("fail" | "retry") | null;
                readonly retry_policy?: components["schemas"]["retry_policy"] | null;
                /** @description `async`: the result comes by a callback. */
                readonly mode?: ("sync" | "async") | null;
                /** @description The key of a circuit breaker. */
                readonly breaker?: string | null;
            } | null;
            /** @description What the input of the step must fit. A JSON Schema, draft 2020-12. */
            readonly input_schema?: (Record<string, unknown> | boolean) | null;
            /** @description What the result must fit. A JSON Schema, draft 2020-12. */
            readonly output_schema?: (Record<string, unknown> | boolean) | null;
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
        /** @description Fails unless a condition holds. */
        readonly assert: {
            /** @description An expression that must be true. */
            readonly condition: string;
            /** @description The message of the failure. */
            readonly message?: unknown;
        };
        /** @description The work that undoes what a node did: exactly one of `task_id`, `action_id` and `workflow_id`. */
        readonly compensate: {
            /** @description The task to run. */
            readonly task_id?: string | null;
            /** @description Its version; the newest by default. */
            readonly task_version?: number | null;
            /** @description The action to run, as a task of one step. */
            readonly action_id?: string | null;
            /** @description Its version; the newest by default. */
            readonly action_version?: number | null;
            /** @description The workflow to run as a sub-workflow. */
            readonly workflow_id?: string | null;
            /** @description Its version; the newest by default. */
            readonly workflow_version?: number | null;
            /** @description Only with `workflow_id`. `catch`: a failed sub-workflow completes the node with its error. */
            readonly on_failure?: ("propagate" | "catch") | null;
            /** @description The input of the work; that of the run by default. */
            readonly input_mapping?: unknown;
            /** @description The longest that one attempt may take. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description The longest that one attempt may take. Milliseconds. */
            readonly timeout_ms?: number | null;
        };
        /** @description Emits an event, which starts the workflows that have it as their trigger. */
        readonly emit_event: {
            /** @description The name of the event. */
            readonly name: string;
            /** @description The input of the runs that it starts; null by default. */
            readonly payload?: unknown;
        };
        /** @description A gate: a person decides. */
        readonly gate: {
            /** @description What is asked. */
            readonly prompt?: unknown;
            /**
             * @description The possible decisions, each of 1 to 64 bytes.
             * @default [
             *       "approve",
             *       "reject"
             *     ]
             */
            readonly choices?: readonly string[] | null;
            /** @description What the `input` of a decision must fit. A JSON Schema, draft 2020-12. */
            readonly input_schema?: (Record<string, unknown> | boolean) | null;
            /** @description How long the gate waits; for ever by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description How long the gate waits; for ever by default. Milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What happens then. `approve` and `reject` must be among the choices. */
            readonly on_timeout?: ("fail" | "approve" | "reject" | "cancel_all") | null;
            /**
             * @description When reminders are sent.
             * @default [
             *       0.75
             *     ]
             */
            readonly remind_at?: readonly number[] | null;
            /**
             * @description Whether the caller that started the run may not decide.
             * @default false
             */
            readonly four_eyes?: boolean | null;
        };
        /** @description Calls a URL. */
        readonly http_request: {
            /** @description The URL, `http` or `https`. */
            readonly url: unknown;
            /** @description The method; GET by default. */
            readonly method?: unknown;
            /** @description The headers of the request: an object. A null is left out. */
            readonly headers?: unknown;
            /** @description An object that is added to the URL. A list repeats its name, a null is left out. */
            readonly query?: unknown;
            /** @description The body. A string is sent as text, other JSON as JSON. */
            readonly body?: unknown;
            /** @description The statuses of success; 200 to 299 by default. */
            readonly expect_status?: (number | readonly number[]) | null;
        };
        /** @description An action: one operation. */
        readonly inline_action: {
            /** @description The id of the action. */
            readonly id?: string | null;
            /** @description The address of this schema, for editors. Curfew ignores it. */
            readonly $schema?: unknown;
            /** @description A name for people. */
            readonly name?: string | null;
            /** @description A text for people. */
            readonly description?: string | null;
            /** @description Limits, retries and the breaker. */
            readonly execution?: {
                /** @description The longest that one call may take. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly timeout?: string | null;
                /** @description The longest that one call may take. Milliseconds. */
                readonly timeout_ms?: number | null;
                /** @description Whether a call that timed out is made again. */
                readonly on_timeout?: ("fail" | "retry") | null;
                readonly retry_policy?: components["schemas"]["retry_policy"] | null;
                /** @description `async`: the result comes by a callback. */
                readonly mode?: ("sync" | "async") | null;
                /** @description The key of a circuit breaker. */
                readonly breaker?: string | null;
            } | null;
            /** @description What the input of the step must fit. A JSON Schema, draft 2020-12. */
            readonly input_schema?: (Record<string, unknown> | boolean) | null;
            /** @description What the result must fit. A JSON Schema, draft 2020-12. */
            readonly output_schema?: (Record<string, unknown> | boolean) | null;
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
        /** @description Asks a language model. */
        readonly llm_call: {
            /**
             * @description Whose API it is. `openai`: any server with chat completions.
             * @enum {string}
             */
            readonly provider: "openai" | "anthropic" | "workers_ai";
            /** @description The model. */
            readonly model: string;
            /** @description One message of the user. Either this or `messages`. */
            readonly prompt?: string | null;
            /** @description The messages. Either these or `prompt`. */
            readonly messages?: (readonly (({
                /** @description Who says it. */
                readonly role: ("system" | "developer" | "user" | "assistant" | "tool") | string;
                /** @description What is said. */
                readonly content?: unknown;
                /** @description The tools that the model called: `[{id, name, arguments}]`. */
                readonly tool_calls?: unknown;
                /** @description The call that a message of a tool answers. */
                readonly tool_call_id?: unknown;
            } | unknown | unknown) | string)[] | string) | null;
            /** @description Instructions. */
            readonly system?: string | null;
            /** @description The address of the API; that of the provider by default. */
            readonly base_url?: string | null;
            /** @description The key of the API: a `${secret.NAME}`. */
            readonly api_key?: string | null;
            /** @description More headers of the request. */
            readonly headers?: (Record<string, unknown> | string) | null;
            /** @description The most tokens of the answer. */
            readonly max_tokens?: (number | string) | null;
            /** @description How freely the model chooses. */
            readonly temperature?: (number | string) | null;
            /** @description The share of likely tokens that it chooses from. */
            readonly top_p?: (number | string) | null;
            /** @description Texts at which the answer ends. */
            readonly stop?: (string | readonly string[]) | null;
            /** @description The tools that the model may call. */
            readonly tools?: (readonly (Record<string, unknown> | string)[] | string) | null;
            /** @description Which tool it calls, or `{name}` of one. */
            readonly tool_choice?: ((Record<string, unknown> | ("auto" | "none" | "required")) | string) | null;
            /** @description The form of the answer. */
            readonly response_format?: {
                /**
                 * @description With the last two the result has `json`.
                 * @enum {string}
                 */
                readonly type: "text" | "json_object" | "json_schema";
                /** @description What the answer must fit. Only with `json_schema`. A JSON Schema, draft 2020-12. */
                readonly schema?: (Record<string, unknown> | boolean) | null;
            } | null;
        };
        /** @description Calls a tool of an MCP server. */
        readonly mcp_tool: {
            /** @description The URL of the server, with Streamable HTTP. */
            readonly server_url: unknown;
            /** @description The name of the tool. */
            readonly tool: unknown;
            /** @description The headers of the request: an object. A null is left out. */
            readonly headers?: unknown;
            /** @description The arguments; the input of the step by default. */
            readonly arguments?: unknown;
        };
        /** @description A node: what happens when a token comes there. It has exactly one of `task_id`, `action_id`, `workflow_id`, `gate` and `wait`, or none of them. */
        readonly node: {
            /** @description Its id, unique in the workflow. */
            readonly id: string;
            /** @description A name for people. */
            readonly name?: string | null;
            /** @description A text for people. */
            readonly description?: string | null;
            /** @description The task to run. */
            readonly task_id?: string | null;
            /** @description Its version; the newest by default. */
            readonly task_version?: number | null;
            /** @description The action to run, as a task of one step. */
            readonly action_id?: string | null;
            /** @description Its version; the newest by default. */
            readonly action_version?: number | null;
            /** @description The workflow to run as a sub-workflow. */
            readonly workflow_id?: string | null;
            /** @description Its version; the newest by default. */
            readonly workflow_version?: number | null;
            /** @description Only with `workflow_id`. `catch`: a failed sub-workflow completes the node with its error. */
            readonly on_failure?: ("propagate" | "catch") | null;
            /** @description The input of the work; that of the run by default. */
            readonly input_mapping?: unknown;
            readonly gate?: components["schemas"]["gate"] | null;
            readonly wait?: components["schemas"]["wait"] | null;
            /** @description Where the result goes: `{target: value}` with `result`; `state.<node id>` by default. `{}` drops it. */
            readonly output_mapping?: Record<string, unknown> | null;
            /** @description The longest that one attempt may take, or "adaptive": learnt from the last runs. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | "adaptive" | null;
            /** @description The longest that one attempt may take, or "adaptive": learnt from the last runs. Milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What follows an attempt that took too long. */
            readonly on_timeout?: ("fail" | "retry") | null;
            /**
             * @description Attempts that may follow a timeout.
             * @default 3
             */
            readonly max_retries?: number | null;
            /**
             * @description Whether this node and what it runs may exceed the hard limits of the preset.
             * @default false
             */
            readonly allow_exceed_hard?: boolean | null;
            /** @description How the task reaches an executor; that of the task by default. */
            readonly dispatch?: ("auto" | "inline" | "direct" | "queue") | null;
            /** @description Classes of failures that open a gate instead of failing the token. */
            readonly escalate_on?: readonly ("network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown")[] | null;
            /** @description What happens if no transition matches; that of the workflow by default. */
            readonly on_no_match?: ("fail" | "end") | null;
            readonly compensate?: components["schemas"]["compensate"] | null;
        };
        /** @description Retries of a single call. */
        readonly retry_policy: {
            /** @description The most calls, the first one included. By default it depends on the failure. */
            readonly max_attempts?: number | null;
            /** @description How the delay grows. */
            readonly backoff?: ("none" | "linear" | "exponential") | null;
            /** @description The delay before the first retry; 1 s by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly initial_delay?: string | null;
            /** @description The delay before the first retry; 1 s by default. Milliseconds. */
            readonly initial_delay_ms?: number | null;
            /** @description The longest delay; 1 min by default. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly max_delay?: string | null;
            /** @description The longest delay; 1 min by default. Milliseconds. */
            readonly max_delay_ms?: number | null;
            /**
             * @description Whether up to half of the delay is added at random.
             * @default true
             */
            readonly jitter?: boolean | null;
            /** @description The classes of failures that are retried, or `*` for all. A timeout is retried by `on_timeout` only, and what is permanent never. */
            readonly retry_on?: readonly ("network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "breaker_open" | "unknown" | "*")[] | null;
            /** @description The longest that all calls and delays of the step may take together. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly total_timeout?: string | null;
            /** @description The longest that all calls and delays of the step may take together. Milliseconds. */
            readonly total_timeout_ms?: number | null;
        };
        /** @description Calls a Worker that is bound to the executor. */
        readonly service_call: {
            /** @description The name of the service binding. */
            readonly binding: string;
            /** @description The path; `/` by default. */
            readonly path?: unknown;
            /** @description The method; POST by default. */
            readonly method?: unknown;
            /** @description The headers of the request: an object. A null is left out. */
            readonly headers?: unknown;
            /** @description The body; the input of the step by default. */
            readonly body?: unknown;
        };
        /** @description Has a runner execute a command. */
        readonly shell: {
            /** @description The command. */
            readonly command: unknown;
            /** @description The runner, by a service binding of the executor. Either this or `url`. */
            readonly binding?: string | null;
            /** @description The runner, by its URL. Either this or `binding`. */
            readonly url?: unknown;
            /** @description The headers of the request: an object. A null is left out. */
            readonly headers?: unknown;
            /** @description The arguments: a list. A null is left out. */
            readonly args?: unknown;
            /** @description Variables of the environment: an object. */
            readonly env?: unknown;
            /** @description The directory to run it in. */
            readonly cwd?: unknown;
            /** @description What the command reads. */
            readonly stdin?: unknown;
            /** @description The exit codes of success; 0 by default. */
            readonly expect_exit?: (number | readonly number[]) | null;
        };
        /** @description A step: one action. */
        readonly step: {
            /** @description Its name, unique in the task; `step-1`, `step-2`, ... by default. */
            readonly ref?: string | null;
            /** @description The order of steps; the position by default. */
            readonly ordinal?: number | null;
            /** @description An action of the catalogue or of the workflow. Either this or `action`. */
            readonly action_id?: string | null;
            /** @description Its version; the newest by default. */
            readonly action_version?: number | null;
            /** @description An action, written here. Either this or `action_id`. */
            readonly action?: components["schemas"]["inline_action"] | null;
            /** @description The input of the action; that of the task by default. */
            readonly input_mapping?: unknown;
            /** @description Where the result goes: `{target: value}` with `result`; `state.<ref>` by default. */
            readonly output_mapping?: Record<string, unknown> | null;
            /** @description An expression, or `{if, then, else}`: whether the step runs. */
            readonly condition?: (string | {
                /** @description The expression. */
                readonly if: string;
                /** @description What happens if it is true. */
                readonly then?: ("continue" | "skip" | "succeed" | "fail") | null;
                /** @description What happens if it is false. */
                readonly else?: ("continue" | "skip" | "succeed" | "fail") | null;
            }) | null;
            /** @description What a failure does. `retry`: the task begins again. `continue`: the error goes to `state._errors`. */
            readonly on_failure?: ("abort" | "retry" | "continue") | null;
            /** @description The longest that one call may take, instead of the action's limit. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout_override?: string | null;
            /** @description The longest that one call may take, instead of the action's limit. Milliseconds. */
            readonly timeout_override_ms?: number | null;
            /**
             * @description Whether this step and its action may exceed the hard limits of the preset.
             * @default false
             */
            readonly allow_exceed_hard?: boolean | null;
        };
        /** @description A join: it waits for the branches of a fan-out and goes on with one token. */
        readonly synchronization: {
            /** @description The group to join. */
            readonly sibling_group: string;
            /** @description How many branches have to arrive. */
            readonly strategy?: (("all" | "any") | {
                /** @description The number of branches. */
                readonly m_of_n: number;
            }) | null;
            /** @description How long to wait, from the first arrival. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description How long to wait, from the first arrival. Milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description What happens then. */
            readonly on_timeout?: ("proceed_with_available" | "fail") | null;
            /** @description For `all`: what a failed branch does. */
            readonly on_branch_failure?: ("proceed_with_available" | "fail") | null;
            /** @description What happens to branches that are still running when the join fires. */
            readonly on_early_complete?: ("abandon" | "cancel" | "allow_late_merge") | null;
            /** @description Where the results of the branches go. */
            readonly merge?: {
                /** @description An expression over `_branch`; `_branch.output` by default. */
                readonly source?: string | null;
                /** @description A target: `state.<name>`, `output.<name>` or, in a nested join, `_branch.output`. */
                readonly target: string;
                /** @description How they are put together. */
                readonly strategy?: ("append" | "concat" | "merge_object" | "keyed_by_branch" | "last_wins") | null;
            } | null;
        };
        /** @description A task: steps that one executor runs from start to end. */
        readonly task: {
            /** @description The id of the task. */
            readonly id: string;
            /** @description The address of this schema, for editors. Curfew ignores it. */
            readonly $schema?: unknown;
            /** @description A name for people. */
            readonly name?: string | null;
            /** @description A text for people. */
            readonly description?: string | null;
            /** @description The steps. */
            readonly steps: readonly components["schemas"]["step"][];
            /** @description The longest that one attempt at the whole task may take. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description The longest that one attempt at the whole task may take. Milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description How the task reaches an executor. */
            readonly dispatch?: ("auto" | "inline" | "direct" | "queue") | null;
            /** @description How often the whole task is tried. */
            readonly retry?: {
                /**
                 * @description The most attempts, the first one included.
                 * @default 3
                 */
                readonly max_attempts?: number | null;
                /** @description How the delay grows. */
                readonly backoff?: ("none" | "linear" | "exponential") | null;
                /** @description The delay before the second attempt; 1 s by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly initial_delay?: string | null;
                /** @description The delay before the second attempt; 1 s by default. Milliseconds. */
                readonly initial_delay_ms?: number | null;
                /** @description The longest delay; 1 min by default. Written like "500ms", "30s", "2m" or "1h30m". */
                readonly max_delay?: string | null;
                /** @description The longest delay; 1 min by default. Milliseconds. */
                readonly max_delay_ms?: number | null;
            } | null;
            /** @description What the input must fit. A JSON Schema, draft 2020-12. */
            readonly input_schema?: (Record<string, unknown> | boolean) | null;
            /** @description What the output must fit. A JSON Schema, draft 2020-12. */
            readonly output_schema?: (Record<string, unknown> | boolean) | null;
        };
        /** @description A transition from one node to another. */
        readonly transition: {
            /** @description Its id, unique in the workflow; `t1`, `t2`, ... by position by default. */
            readonly id?: string | null;
            /** @description The node that it leaves. */
            readonly from_node_id: string;
            /** @description The node that it leads to. */
            readonly to_node_id: string;
            /** @description The end of the token that it follows. */
            readonly on?: ("success" | "failure" | "timeout") | null;
            /**
             * @description The lowest number is tried first.
             * @default 0
             */
            readonly priority?: number | null;
            /** @description An expression that must be true. */
            readonly condition?: string | null;
            /** @description How often it may fire on one path. */
            readonly loop_config?: {
                /** @description The number of times. */
                readonly max_iterations?: number | null;
            } | null;
            /** @description So many tokens instead of one: a fan-out. */
            readonly spawn_count?: number | null;
            /** @description One token for each item of a list: a fan-out. */
            readonly foreach?: {
                /** @description An expression that gives a list of at most 1 000 items. */
                readonly collection: string;
                /** @description The name of the item in expressions of the branch. */
                readonly item_var?: string | null;
            } | null;
            /** @description The name of the group that the tokens belong to; the id of a transition that fans out by default. */
            readonly sibling_group?: string | null;
            readonly synchronization?: components["schemas"]["synchronization"] | null;
        };
        /** @description Writes to the `state` and `output` of the task. */
        readonly update_context: {
            /** @description What to write: `{target: value}`. Targets are `state.x`, `output.y`, or `y` for `output.y`. */
            readonly set: Record<string, unknown>;
        };
        /** @description A wait for a moment or a signal: exactly one of `sleep`, `until` and `signal`. */
        readonly wait: {
            /** @description How long to wait, or one `${...}` that gives it. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly sleep?: string;
            /** @description How long to wait, or one `${...}` that gives it. Milliseconds. */
            readonly sleep_ms?: number | string;
            /** @description When to go on: Unix milliseconds, or ISO 8601 with its offset. */
            readonly until?: (string | number) | null;
            /** @description The name of a signal; the result is its body. */
            readonly signal?: string | null;
            /** @description Only with `signal`: how long to wait. Written like "500ms", "30s", "2m" or "1h30m". */
            readonly timeout?: string | null;
            /** @description Only with `signal`: how long to wait. Milliseconds. */
            readonly timeout_ms?: number | null;
            /** @description Only with `signal`: what happens then. `continue`: the result is null. */
            readonly on_timeout?: ("fail" | "continue") | null;
        };
        /** @description Runs another workflow, as a node with `workflow_id` does. */
        readonly workflow_call: {
            /** @description The workflow to run. */
            readonly workflow_id: string;
            /** @description Its version; the newest by default. */
            readonly version?: number | null;
            /** @description `catch`: a failed run completes the step with its error. */
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
