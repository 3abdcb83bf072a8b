// The types of the API, written by scripts/client_types.mjs from src/api/openapi.json. Do not edit: change openapi/ instead.

export interface paths {
    "/v1/workflows/{workflow_id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Starts a run.
         * @description The same `run_id` with the same request is answered with the same run, so a start can be repeated safely.
         */
        post: operations["startRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs:batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts up to 100 runs, each with an outcome of its own. */
        post: operations["startBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/simulate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs a workflow in virtual time, with mocks. Nothing is stored, and no call is made. */
        post: operations["simulate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists runs, about a second behind the runs themselves.
         * @description One filter, or `workflow` with `status`, costs the database what it shows. Other combinations may answer a short or empty page with a `next_cursor`: go on until it is null.
         */
        get: operations["listRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a run; with `wait_ms` it waits for the end. */
        get: operations["readRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The path that a run took: one token for each visit of a node. */
        get: operations["listTokens"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The history of a run, in the order of commits. */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The history of a run as it is committed, by server-sent events or a WebSocket.
         * @description The history comes first, then each commit's events. Every message has the JSON of an `Event`, or of the type `progress` that of the progress of a token. The stream closes after the event that ends the run.
         */
        get: operations["watchRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What became of the notifications about a run, in the order of their events. */
        get: operations["listNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/timeouts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The records of the timeouts of a run; JSON Lines under `Accept: application/x-ndjson`. */
        get: operations["listTimeouts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/timeouts/{n}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads the record of a timeout, and why it came to it. */
        get: operations["readTimeout"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/deliverable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What an ended run has to show. */
        get: operations["readDeliverable"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The run with its history, durations and answers, for tests, what-if and reports. */
        get: operations["exportRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/what-if": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Plays the recorded run again in virtual time, with changes: other limits, other policies. Nothing is stored, and no call is made. */
        post: operations["whatIf"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which ways back a run has, which one is recommended, and why. */
        get: operations["readResumeOptions"];
        put?: never;
        /** Lets a paused run go on. */
        post: operations["resumeRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ends a run. Calls in flight are aborted, sub-workflows are cancelled; twice is once. */
        post: operations["cancelRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops all clocks of a run, and those of its sub-workflows. */
        post: operations["pauseRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives a run more time, up to 30 days at once. */
        post: operations["extendRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets a run go on that failed or timed out. */
        post: operations["retryRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/restart": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Begins a run again, as its next attempt. */
        post: operations["restartRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/signals/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends a signal to a run. It is kept if its wait has not begun. */
        post: operations["signalRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/gates/{gate_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decides a gate. The first decision counts. */
        post: operations["decideGate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs:cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends `cancel` to many runs, in the background. */
        post: operations["cancelRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs:pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends `pause` to many runs, in the background. */
        post: operations["pauseRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs:resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends `resume` to many runs, in the background. */
        post: operations["resumeRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs:extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends `extend` to many runs, in the background. */
        post: operations["extendRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs:retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends `retry` to many runs, in the background. */
        post: operations["retryRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operations/{operation_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far a bulk operation is. */
        get: operations["readOperation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the newest versions of all workflows, by id. */
        get: operations["listWorkflows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a workflow. */
        get: operations["readWorkflow"];
        /** Stores a workflow. Changed content becomes the next version. */
        put: operations["putWorkflow"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the newest versions of all tasks, by id. */
        get: operations["listTasks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{task_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a task. */
        get: operations["readTask"];
        /** Stores a task. Changed content becomes the next version. */
        put: operations["putTask"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/actions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the newest versions of all actions, by id. */
        get: operations["listActions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/actions/{action_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads an action. */
        get: operations["readAction"];
        /** Stores an action. Changed content becomes the next version. */
        put: operations["putAction"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/workflows/{workflow_id}/analyze": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Says what will go wrong in runs of a workflow, and what a run can take at most. Nothing is stored. */
        post: operations["analyzeWorkflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/gates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Everything that waits for a person, oldest first. */
        get: operations["listGates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reports an event, which starts every workflow that it triggers.
         * @description The body is the input of the runs; null if there is none.
         */
        post: operations["publishEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/callbacks/{capability}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delivers the result of an async action.
         * @description The capability is the credential. Services may add query parameters of their own; they are ignored.
         */
        post: operations["deliverCallback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/breakers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The breakers that ever counted a failure, by key. */
        get: operations["listBreakers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/breakers/{key}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Closes a breaker. */
        post: operations["resetBreaker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the Worker answers. It needs no credential. */
        get: operations["readHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metrics of all runs, for Prometheus. A credential that is bound to workflows gets 403. */
        get: operations["readMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the credential of the request may do. */
        get: operations["readIdentity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document. It needs no credential. */
        get: operations["readContract"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schema/{name}.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The JSON Schema of documents, for editors and people. It needs no credential. */
        get: operations["readSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The id of a document: 1 to 64 of `a-z 0-9 - _`. */
        Id: string;
        /**
         * @description `waiting`: every token waits for a person, a signal or a callback. `compensating`: the end is decided and work is undone. The last four are ends.
         * @enum {string}
         */
        RunStatus: "running" | "waiting" | "paused" | "compensating" | "completed" | "failed" | "timed_out" | "cancelled";
        /**
         * @description The last four are ends.
         * @enum {string}
         */
        TokenStatus: "pending" | "dispatched" | "executing" | "waiting_for_siblings" | "waiting_for_subworkflow" | "awaiting_human" | "suspended" | "completed" | "failed" | "timed_out" | "cancelled";
        /** @description Why a run, a token or a step failed. */
        Failure: {
            /** @description A stable code. Codes of peers and scripts are free. */
            code: string;
            /**
             * @description What kind of failure it is. It decides about retries and routes.
             * @enum {string}
             */
            class: "network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown";
            /** @description For people. Cut at 4 KiB. */
            message: string;
            /** @description The node that failed. */
            node_id?: string;
            /** @description The token that failed. */
            token_id?: string;
            /** @description The step that failed. */
            step_ref?: string;
        };
        /** @description A deadline of the run. It has a moment, or remaining milliseconds while its clock stands still. */
        Deadline: {
            /**
             * @description What it limits.
             * @enum {string}
             */
            kind: "workflow" | "compensation" | "execution" | "synchronization" | "gate" | "wait";
            /** @description When it passes. Unix milliseconds. */
            due_at?: number;
            /** @description What is left of it. Milliseconds. */
            remaining_ms?: number;
            /** @description The token that it limits. */
            token_id?: string;
            /** @description The node of that token, or of the join. */
            node_id?: string;
            /** @description The gate that it limits. */
            gate_id?: string;
        } & (unknown | unknown);
        /** @description The event that started the run. */
        TriggeredBy: {
            /** @description The name of the event. */
            event: string;
            /** @description The key of the event. */
            key: string;
        };
        /** @description A token whose work was undone, or was to be undone. */
        CompensatedToken: {
            /** @description The node of the token. */
            node_id: string;
            /** @description The token that had done the work. */
            token_id: string;
            /** @description Why its compensation failed. */
            error?: components["schemas"]["Failure"];
        };
        /** @description A run. */
        Run: {
            /** @description The id of the run. */
            id: string;
            /** @description The workflow that it runs. */
            workflow_id: string;
            /** @description The version of the workflow. */
            version: number;
            status: components["schemas"]["RunStatus"];
            /** @description Why it failed or timed out. */
            error: components["schemas"]["Failure"] | null;
            /** @description When it started. Unix milliseconds. */
            started_at: number;
            /** @description When it ended. Unix milliseconds. */
            ended_at: number | null;
            /** @description When its limit passes. Null without a limit, and while its clock stands still at gates. Unix milliseconds. */
            timeout_at: number | null;
            /** @description 1, and one more for each restart. */
            attempt: number;
            /** @description The tags of its workflow. */
            tags: string[];
            /** @description Its limit. Milliseconds. */
            timeout_ms: number | null;
            /** @description How long it took, or has taken so far. Milliseconds. */
            duration_ms: number;
            /** @description What it was started with. */
            input: unknown;
            /** @description What it returned; null until it has completed. */
            output: unknown;
            /** @description What its nodes have written so far. */
            context: {
                /** @description The results of nodes, and what mappings wrote to `state`. */
                state: unknown;
                /** @description What mappings wrote to `output`. */
                output: unknown;
            };
            /** @description All deadlines that are running or stopped. */
            deadlines: components["schemas"]["Deadline"][];
            /** @description How many tokens have each status. A status that no token has is left out. */
            counts: {
                [key: string]: number;
            };
            /** @description The topmost run that led to this one by calls. */
            root_run_id: string;
            /** @description The run and the token that called it. */
            parent?: {
                /** @description The id of the run that called it. */
                run_id: string;
                /** @description The token that waits for it. */
                token_id: string;
            };
            triggered_by?: components["schemas"]["TriggeredBy"];
            /** @description The name of the caller that started it, the topmost run, or published the first event. */
            started_by?: string;
            /** @description Why its clocks stand still. */
            paused_by?: ("person" | "workflow_timeout" | "escalation" | "parent")[];
            /** @description The gate that the whole run waits at. */
            gate?: components["schemas"]["Gate"];
            /** @description The reason of its cancellation. */
            reason?: string;
            /** @description How a compensating run will end. */
            ends_as?: components["schemas"]["RunStatus"];
            /** @description What its compensation did. */
            compensation?: {
                /**
                 * @description Whether all work was undone.
                 * @enum {string}
                 */
                status: "completed" | "partial" | "failed";
                /** @description Tokens whose work was undone. */
                done: components["schemas"]["CompensatedToken"][];
                /** @description Tokens whose work could not be undone. */
                failed: components["schemas"]["CompensatedToken"][];
                /** @description Tokens that are in neither list because there are too many. */
                omitted?: number;
            };
            /** @description What its end handlers did, in their order. */
            on_end?: {
                status: components["schemas"]["TokenStatus"];
                /** @description Why it failed. */
                error?: components["schemas"]["Failure"];
            }[];
            /** @description How late the timeouts of this run were enforced, by layer. */
            timeout_enforcement_latency_seconds?: {
                [key: string]: {
                    /** @description The number of timeouts. */
                    count: number;
                    /** @description Their mean. Seconds. */
                    mean: number;
                    /** @description The latest one. Seconds. */
                    max: number;
                };
            };
        };
        /** @description A run in a list. Long texts are cut. */
        RunSummary: {
            /** @description The id of the run. */
            id: string;
            /** @description The workflow that it runs. */
            workflow_id: string;
            /** @description The version of the workflow. */
            version: number;
            status: components["schemas"]["RunStatus"];
            /** @description Why it failed or timed out. */
            error: components["schemas"]["Failure"] | null;
            /** @description When it started. Unix milliseconds. */
            started_at: number;
            /** @description When it ended. Unix milliseconds. */
            ended_at: number | null;
            /** @description When its limit passes. Null without a limit, and while its clock stands still at gates. Unix milliseconds. */
            timeout_at: number | null;
            /** @description 1, and one more for each restart. */
            attempt: number;
            /** @description The tags of its workflow. */
            tags: string[];
            /** @description How long it took; null until it has ended. Milliseconds. */
            duration_ms: number | null;
            /** @description The run and the token that called it. */
            parent: {
                /** @description The id of the run that called it. */
                run_id: string;
                /** @description The token that waits for it. */
                token_id: string;
            } | null;
            triggered_by?: components["schemas"]["TriggeredBy"];
            /**
             * @description Something was cut; `GET /v1/runs/{id}` has the whole run.
             * @constant
             */
            truncated?: true;
        };
        /** @description What a step of a task did. */
        Step: {
            /** @description The name of the step. */
            ref: string;
            /**
             * @description How it ended.
             * @enum {string}
             */
            status: "completed" | "skipped" | "failed" | "timed_out";
            /** @description How often it was tried. */
            attempts: number;
            /** @description How long all attempts took together. Milliseconds. */
            duration_ms: number;
            /** @description The failure of each attempt but the last one. */
            retries?: {
                /**
                 * @description What kind of failure it is. It decides about retries and routes.
                 * @enum {string}
                 */
                class: "network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown";
                /** @description The code of the failure. */
                code: string;
                /** @description The delay after it. Milliseconds. */
                delay_ms: number;
                /** @description When it failed, from the beginning of the step. Milliseconds. */
                after_ms?: number;
            }[];
            /** @description When it began. Unix milliseconds. */
            started_at?: number;
            /** @description Its span in the trace of the run. */
            span_id?: string;
            /** @description The last call of a model or a tool. */
            gen_ai?: {
                /**
                 * @description What was called.
                 * @enum {string}
                 */
                operation: "chat" | "execute_tool";
                /** @description The provider of the model. */
                provider?: string;
                /** @description The model that was asked for. */
                request_model?: string;
                /** @description The model that answered. */
                response_model?: string;
                /** @description Tokens of the prompt. */
                input_tokens?: number;
                /** @description Tokens of the answer. */
                output_tokens?: number;
                /** @description The tool. */
                tool?: string;
            };
        };
        /** @description A part of a result. */
        Artifact: {
            /** @description The `ref` of the step. */
            name: string;
            /** @description False if the step was stopped or is under way, and if the text was cut. */
            complete: boolean;
            /** @description The size before any cut. */
            bytes: number;
            /** @description A string as it is, any other value as JSON. */
            text: string;
        };
        /** @description How far the attempt of an executing token had come. */
        Progress: {
            /** @description When it arrived. Unix milliseconds. */
            at: number;
            /** @description The step under way. */
            step_ref: string;
            /** @description Its position, from 0. */
            step_index: number;
            /** @description How many steps the task has. */
            steps_total: number;
            /** @description The call of that step, from 1. */
            attempt: number;
            /** @description The results of finished steps, and the text that has arrived of the step under way. */
            partial: components["schemas"]["Artifact"][];
        };
        /** @description A visit of a node: one step of the path that a run took. */
        Token: {
            /** @description `t1`, `t2`, ... in the order of creation. */
            id: string;
            /** @description The node that it visits. */
            node_id: string;
            status: components["schemas"]["TokenStatus"];
            /** @description The number of its attempt; 0 before the first one. */
            epoch: number;
            /** @description How many attempts followed a timeout. */
            retry_count: number;
            /** @description How its task was dispatched. */
            lane: ("inline" | "direct" | "queue") | null;
            /** @description The branch of a fan-out that it belongs to. */
            branch: {
                /** @description The sibling group of the fan-out. */
                group: string;
                /** @description The number of the fan-out in its run. */
                instance: number;
                /** @description The position of the branch, from 0. */
                index: number;
                /** @description The number of branches. */
                total: number;
                /** @description The item of a `foreach`. */
                item: unknown;
                /** @description What the branch has returned so far. */
                output: unknown;
            } | null;
            /** @description The token that it follows. */
            parent_token_id: string | null;
            /** @description When it was created. Unix milliseconds. */
            created_at: number;
            /** @description When its task was sent to an executor. Unix milliseconds. */
            dispatched_at: number | null;
            /** @description When its task, gate or wait began. Unix milliseconds. */
            started_at: number | null;
            /** @description When its work ended. Unix milliseconds. */
            ended_at: number | null;
            /** @description When its limit passes. Null while its clock stands still. Unix milliseconds. */
            timeout_at: number | null;
            /** @description Its limit. Milliseconds. */
            timeout_ms: number | null;
            /** @description Where its limit comes from, if no document has it. */
            timeout_reason: string | null;
            /** @description Why it is in its status, where the status alone does not say it. */
            reason: string | null;
            /** @description Why it failed. */
            error: components["schemas"]["Failure"] | null;
            /** @description What its node returned. */
            output: unknown;
            /** @description What the steps of its task did. */
            steps: components["schemas"]["Step"][];
            /** @description Of a token that is executing, if its executor sends it. */
            progress?: components["schemas"]["Progress"];
            /**
             * @description It undoes the work of another token.
             * @constant
             */
            compensation?: true;
            /** @description The token whose work it undoes. */
            compensates?: string;
            /**
             * @description It belongs to an end handler.
             * @constant
             */
            on_end?: true;
        };
        /** @description How a gate was decided. */
        Decision: {
            /** @description One of the choices of the gate. */
            choice: string;
            /** @description What the person entered. */
            input?: unknown;
            /** @description What the person remarked. */
            comment?: string;
            /** @description The name of the person. */
            by?: string;
            /** @description When it was decided. Unix milliseconds. */
            at: number;
        };
        /** @description A question to a person. */
        Gate: {
            /** @description The id of the gate in its run. */
            id: string;
            /** @description The run that asks. */
            run_id: string;
            /** @description The node that asks; null if the whole run does. */
            node_id: string | null;
            /** @description The token that waits; null if the whole run does. */
            token_id: string | null;
            /**
             * @description `node`: the workflow asks there. `workflow_timeout`: the limit of the run passed. `escalation`: something failed.
             * @enum {string}
             */
            kind: "node" | "workflow_timeout" | "escalation";
            /** @description What is asked. */
            prompt: unknown;
            /** @description The possible decisions. */
            choices: string[];
            /** @description The JSON Schema of the input of a decision; null if any is accepted. */
            input_schema: unknown;
            /** @description When it was opened. Unix milliseconds. */
            opened_at: number;
            /** @description When it decides by itself. Unix milliseconds. */
            timeout_at: number | null;
            /** @description When a reminder was last sent. Unix milliseconds. */
            reminded_at: number | null;
            /**
             * @description `cancelled`: the token or the run ended before a decision.
             * @enum {string}
             */
            status: "open" | "decided" | "timed_out" | "cancelled";
            /** @description How it was decided. */
            decision: components["schemas"]["Decision"] | null;
            /**
             * @description Something was cut in this list; the message of a decision with a wrong choice has all choices.
             * @constant
             */
            truncated?: true;
        };
        /** @description An event of the history of a run. Which of the optional fields it has depends on its kind. */
        Event: {
            /** @description Its number. It rises, and an event has the same one at every reading. */
            seq: number;
            /** @description When it happened. Unix milliseconds. */
            at: number;
            /**
             * @description What happened.
             * @enum {string}
             */
            kind: "run_started" | "run_completed" | "run_compensating" | "run_failed" | "run_timed_out" | "run_cancelled" | "run_paused" | "run_resumed" | "run_extended" | "run_retried" | "run_restarted" | "token_created" | "token_dispatched" | "token_completed" | "token_failed" | "token_timed_out" | "token_cancelled" | "token_retried" | "fan_out_started" | "fan_in_started" | "fan_in_completed" | "sync_timed_out" | "gate_opened" | "gate_reminded" | "gate_decided" | "gate_timed_out" | "late_result_discarded" | "deadline_warning" | "signal_received" | "subworkflow_started" | "subworkflow_ended" | "subworkflow_paused" | "subworkflow_resumed" | "limit_exceeded" | "dispatch_rung_again" | "attempt_reaped";
            /** @description The name of the caller that asked for it. */
            by?: string;
            /**
             * @description Who or what paused, resumed or ended the run.
             * @enum {string}
             */
            cause?: "person" | "workflow_timeout" | "escalation" | "parent";
            /** @description The token that it happened to. */
            token_id?: string | null;
            /** @description The node that it happened at. */
            node_id?: string | null;
            /** @description The gate that it happened to. */
            gate_id?: string;
            /** @description The number of the fan-out that it happened to. */
            instance?: number;
            /**
             * @description The token undoes the work of another one.
             * @constant
             */
            compensation?: true;
            /** @description The number of the attempt. */
            epoch?: number;
            /** @description How many attempts followed a timeout. */
            retry_count?: number;
            /** @description The delay before the next attempt. Milliseconds. */
            delay_ms?: number;
            /** @description How the sub-workflow or the late attempt ended. */
            status?: string;
            /** @description The code of the failure. */
            code?: string;
            /**
             * @description The class of the failure.
             * @enum {string}
             */
            class?: "network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown";
            /** @description The reason of a cancellation or of another dispatch. */
            reason?: string | null;
            /** @description The version of the workflow from here on. */
            version?: number;
            /** @description The version of the workflow until here. */
            from_version?: number;
            /** @description The number of the attempt of the run that begins. */
            attempt?: number;
            /** @description The node that the run begins again from; null for the first one. */
            from_node_id?: string | null;
            /**
             * @description How the run was retried.
             * @enum {string}
             */
            mode?: "retry_step" | "discard_and_retry" | "escalate";
            /** @description The tokens that go on, or that were live. 100 at most. */
            token_ids?: string[];
            /** @description How many tokens were live. */
            live_tokens?: number;
            /** @description How the run will end. */
            ends_as?: components["schemas"]["RunStatus"];
            /** @description How long the pause took. Milliseconds. */
            paused_ms?: number;
            /** @description By how much the run was extended. Milliseconds. */
            by_ms?: number;
            /** @description The limit. Milliseconds. */
            timeout_ms?: number | null;
            /**
             * @description What kind of gate was opened.
             * @enum {string}
             */
            gate_kind?: "node" | "workflow_timeout" | "escalation";
            /** @description What was decided. */
            choice?: string;
            /** @description The name of the signal. */
            name?: string;
            /** @description How many branches had completed. */
            completed?: number;
            /** @description The run of the sub-workflow. */
            child_run_id?: string;
            /** @description Which deadline is near: `workflow`, `execution`, `synchronization`, `gate` or `wait`. */
            deadline?: string;
            /** @description When the deadline passes. Unix milliseconds. */
            due_at?: number;
            /** @description What is left until then. Milliseconds. */
            remaining_ms?: number;
            /** @description The id of the run. */
            workflow_run_id?: string;
            /**
             * @description Which layer the timeout belongs to.
             * @enum {string}
             */
            timeout_type?: "execution" | "workflow" | "synchronization";
            /** @description The limit that passed. Milliseconds. */
            timeout_duration_ms?: number | null;
            /**
             * @description What was done about the timeout.
             * @enum {string}
             */
            policy_applied?: "human_gate" | "retry" | "fail" | "proceed_with_available" | "cancel_all";
            /** @description The path of the whole record. */
            recovery_path?: string;
            /** @description Why compensations or end handlers of the run were given up. */
            given_up?: string;
            /** @description The limit that was reached. */
            limit?: string;
            /** @description How much that limit allows. */
            most?: number;
            /** @description The name of the event that did not start every workflow. */
            event_name?: string;
            /** @description The key of that event. */
            event_key?: string;
            /** @description The first event of the chain. */
            root_event?: {
                /** @description Its name. */
                event: string;
                /** @description Its key. */
                key: string;
            } | null;
            /** @description The workflows that were not started. */
            workflow_ids?: string[];
        };
        /** @description The record of a timeout. */
        Timeout: {
            /** @description The `seq` of its event. */
            id: number;
            /** @description What happened. */
            timeout_event: {
                /**
                 * Format: date-time
                 * @description When it was enforced, as ISO 8601.
                 */
                timestamp: string;
                /**
                 * @description Which kind of deadline passed.
                 * @enum {string}
                 */
                scope: "step" | "flow" | "llm_call" | "tool" | "sync" | "gate";
                /** @description The limit that passed. Milliseconds. */
                timeout_ms?: number;
                /** @description How much time was used. Milliseconds. */
                elapsed_ms: number;
                /** @description When it was due. Unix milliseconds. */
                due_at: number;
                /** @description How late it was enforced. Milliseconds. */
                lateness_ms: number;
            };
            /** @description What was under way. */
            last_known_state: {
                /** @description The node. */
                node_id?: string;
                /** @description The token. */
                token_id?: string;
                /** @description The step that was stopped. */
                step_ref?: string;
                /** @description The status of the token, or of the run. */
                phase: string;
                /** @description Steps done and steps in all, or the tokens that were at work. */
                progress: unknown;
            };
            /** @description What had been produced until then. */
            partial_artifacts: {
                /** @description The node, where the record is of several tokens. */
                node_id?: string;
                /** @description The token, where the record is of several. */
                token_id?: string;
                /** @description The `ref` of the step. */
                name: string;
                /** @description False if the step was stopped or is under way, and if the text was cut. */
                complete: boolean;
                /** @description The size before any cut. */
                bytes: number;
                /** @description A string as it is, any other value as JSON. */
                text: string;
            }[];
            /**
             * @description Something of what had been produced did not fit.
             * @constant
             */
            artifacts_cut?: true;
            /** @description What a retry would begin with. */
            context_for_resume: {
                /** @description The last token that had completed. */
                last_successful_checkpoint: {
                    /** @description Its id. */
                    token_id: string;
                    /** @description Its node. */
                    node_id: string;
                    /** @description When it ended. Unix milliseconds. */
                    at: number | null;
                } | null;
                /** @description The state of the run. */
                state: unknown;
            };
            /** @description How many attempts had followed a timeout before. */
            retry_count: number;
            /**
             * @description What was done about it.
             * @enum {string}
             */
            final_action: "escalate" | "retry" | "fail" | "proceed" | "cancel";
            /** @description The path of the whole record. */
            recovery_path: string;
            /** @description The reason, if it does not follow from the scope. */
            error?: {
                /** @description Its code. */
                code: string;
            };
            /** @description Of a single record only. */
            why?: components["schemas"]["TimeoutWhy"];
        };
        /** @description A line of the timeout log. */
        TimeoutLine: {
            /**
             * Format: date-time
             * @description When it was enforced, as ISO 8601.
             */
            timestamp: string;
            /** @description The run. */
            run_id: string;
            /** @description Its workflow. */
            flow_key: string;
            /** @description The node. */
            step_id: string | null;
            /**
             * @description Which kind of deadline passed.
             * @enum {string}
             */
            scope: "step" | "flow" | "llm_call" | "tool" | "sync" | "gate";
            /** @description The limit that passed. Milliseconds. */
            timeout_ms: number | null;
            /** @description How much time was used. Milliseconds. */
            elapsed_ms: number;
            /** @description How many attempts had followed a timeout before. */
            retry_count: number;
            /**
             * @description What was done about it.
             * @enum {string}
             */
            final_action: "escalate" | "retry" | "fail" | "proceed" | "cancel";
            /** @description The path of the whole record. */
            recovery_path: string;
        };
        /** @description The ways in which an ended run can go on. */
        ResumeOptions: {
            /** @description The run. */
            run_id: string;
            status: components["schemas"]["RunStatus"];
            /** @description Whether it can be retried. */
            resumable: boolean;
            /** @description Why it cannot be retried. */
            reason: string | null;
            /** @description The modes of a retry. */
            options: {
                /**
                 * @description Its name.
                 * @enum {string}
                 */
                mode: "retry_step" | "discard_and_retry" | "escalate";
                /** @description Whether it is possible. */
                open: boolean;
                /** @description What it does. */
                what: string;
            }[];
            /** @description The mode that fits the failure best. */
            recommended: ("retry_step" | "discard_and_retry" | "escalate") | null;
            /** @description Why that mode is recommended. */
            why: string | null;
            /** @description Whether another version of the workflow is the way out. */
            version: {
                /** @description The version that the run has. */
                current: number;
                /** @description Whether the document has to be fixed first. */
                recommended: boolean;
                /** @description Why the same document would fail again. */
                why: string | null;
                /** @description What to send. */
                how: string | null;
            };
            /** @description The tokens that failed. */
            failed_tokens: {
                /** @description Its id. */
                token_id: string;
                /** @description Its node. */
                node_id: string;
                status: components["schemas"]["TokenStatus"];
                /** @description Why it failed. */
                error: components["schemas"]["Failure"] | null;
                /** @description Whether finished steps need not be done again. */
                has_partial_work: boolean;
            }[];
            /** @description How many tokens a retry would continue. */
            tokens_to_go_on: number;
            /** @description The last token that had completed. */
            last_successful_checkpoint: {
                /** @description Its id. */
                token_id: string;
                /** @description Its node. */
                node_id: string;
                /** @description When it ended. Unix milliseconds. */
                at: number | null;
            } | null;
            /** @description Why the run failed. */
            error: components["schemas"]["Failure"] | null;
        };
        /** @description An error of a token. */
        TokenError: {
            /** @description The token. */
            token_id: string;
            /** @description Its node. */
            node_id: string;
            /** @description What failed. */
            error: components["schemas"]["Failure"];
        };
        /** @description The output of a completed run. */
        CompleteDeliverable: {
            /**
             * @description The run completed.
             * @constant
             */
            kind: "output";
            /**
             * @description Nothing is missing.
             * @constant
             */
            status: "complete";
            /** @description The run. */
            run_id: string;
            /** @description What the run returned. */
            output: unknown;
        };
        /** @description What another ended run got done. */
        PartialDeliverable: {
            /**
             * @description The run did not complete.
             * @constant
             */
            kind: "fallback";
            /**
             * @description Something is missing.
             * @constant
             */
            status: "partial";
            /** @description The run. */
            run_id: string;
            /** @description The code of its error, or `cancelled`. */
            reason: string;
            /** @description Why it ended, for people. */
            message: string;
            /** @description The nodes that completed, in their order. */
            completed_nodes: string[];
            /** @description The state of the run. */
            state: unknown;
            /** @description What mappings wrote to `output`. */
            output: unknown;
            /** @description More about its end. */
            diagnostics: {
                run_status: components["schemas"]["RunStatus"];
                /** @description The attempt of the run. */
                attempt: number;
                /** @description How long it took. Milliseconds. */
                duration_ms: number | null;
                /** @description The errors of tokens, 100 at most. */
                errors: components["schemas"]["TokenError"][];
                /** @description How many timeouts it had. */
                timeouts: number;
                /** @description The path that says how it can go on. */
                resume: string;
            };
        };
        /** @description What an ended run has to show: its output, or the parts that it got done. */
        Deliverable: components["schemas"]["CompleteDeliverable"] | components["schemas"]["PartialDeliverable"];
        /** @description Why a deadline passed, derived from the history of the run when it is asked for. What the history cannot say is null. */
        TimeoutWhy: {
            /** @description The limit that passed. */
            limit: {
                /**
                 * @description What it is a limit of.
                 * @enum {string}
                 */
                layer: "workflow" | "execution" | "call" | "join" | "gate" | "wait" | "callback" | "heartbeat";
                /**
                 * @description Where its length comes from.
                 * @enum {string}
                 */
                source: "node" | "task" | "step" | "action" | "gate" | "wait" | "join" | "workflow" | "preset" | "adaptive" | "start" | "parent_budget" | "calling_node" | "join_default" | "gate_default" | "deployment" | "unknown";
                /** @description Its length. Milliseconds. */
                timeout_ms: number | null;
                /** @description Where it is written: in the workflow's document, or in `document`. */
                pointer: string | null;
                /** @description The task or action that it is written in. */
                document: {
                    /**
                     * @description Its kind.
                     * @enum {string}
                     */
                    kind: "tasks" | "actions";
                    /** @description Its id. */
                    id: string;
                } | null;
                /** @description The preset whose default it is. */
                preset: ("standard" | "service" | "flow") | null;
                /** @description How its length was computed, or why it is not known. */
                reason: string | null;
                /** @description How much of it are extensions. Milliseconds. */
                extended_ms?: number;
            };
            /** @description The limit around it. */
            outer: {
                /**
                 * @description Whose limit it is.
                 * @enum {string}
                 */
                layer: "workflow" | "parent";
                /** @description The run that has it. */
                run_id: string;
                /** @description The token of the parent that waited for this run. */
                token_id: string | null;
                /** @description The outer limit is the one that passed. */
                passed_first: boolean;
                /** @description What was left of it; null where it is not known or there is none. Milliseconds. */
                left_ms: number | null;
            } | null;
            /** @description What used the time. Which fields it has depends on the layer. */
            used: {
                /** @description How much time counted. Milliseconds. */
                elapsed_ms?: number;
                /** @description How long the clock stood still: in pauses, or in front of a person. Milliseconds. */
                stopped_ms?: number | null;
                /** @description Before an executor had the attempts. Milliseconds. */
                queued_ms?: number;
                /** @description In delays before retries of calls and of attempts. Milliseconds. */
                waited_ms?: number;
                /** @description The attempts up to the timeout, the last 100. */
                attempts?: {
                    /** @description Its number. */
                    epoch: number;
                    /** @description When it was sent. Unix milliseconds. */
                    dispatched_at: number;
                    /** @description Until an executor had it; null where only the last claim is known. Milliseconds. */
                    queued_ms: number | null;
                    /** @description How long the executor had it. Milliseconds. */
                    duration_ms: number | null;
                    /**
                     * @description How it ended.
                     * @enum {string}
                     */
                    ended: "completed" | "failed" | "timed_out" | "silent" | "repeated" | "cut_off" | "running";
                    /** @description The run of the sub-workflow. */
                    child_run_id?: string;
                }[];
                /** @description How many more there are. */
                attempts_left_out?: number;
                /** @description The waits between attempts, the last 100. */
                waits?: {
                    /** @description When it began. Unix milliseconds. */
                    began_at: number;
                    /** @description How long it was. Milliseconds. */
                    duration_ms: number;
                    /**
                     * @description What was waited for.
                     * @enum {string}
                     */
                    why: "to_begin" | "retry_delay";
                }[];
                /** @description How many more there are. */
                waits_left_out?: number;
                /** @description The steps of the last attempt, as its executor reported them. */
                calls?: {
                    /** @description The step. */
                    step_ref: string;
                    /**
                     * @description How it ended.
                     * @enum {string}
                     */
                    status: "completed" | "skipped" | "failed" | "timed_out";
                    /** @description How many calls it made. */
                    calls: number;
                    /** @description How long they took together. Milliseconds. */
                    duration_ms: number;
                    /** @description How much of that were waits between calls. Milliseconds. */
                    backoff_ms: number;
                }[];
                /** @description The gate. */
                gate_id?: string | null;
                /** @description When the gate opened. Unix milliseconds. */
                opened_at?: number | null;
                /** @description How many reminders it sent. */
                reminders?: number | null;
                /** @description When the first branch arrived, which began the wait. Unix milliseconds. */
                first_arrival_at?: number;
                /** @description How many branches the fan-out had. */
                branches?: number;
                /** @description How many had arrived. */
                arrived?: number;
                /** @description How many more the join needed. */
                needed?: number;
                /** @description The branches that had not arrived, 100 at most. */
                missing?: {
                    /** @description Its number. */
                    index: number;
                    /** @description Its last token at that time. */
                    token_id: string | null;
                    /** @description Where that token was. */
                    node_id: string | null;
                    /** @description When it arrived after all, or brought its result. Unix milliseconds. */
                    came_at: number | null;
                }[];
                /** @description How many more there are. */
                missing_left_out?: number;
                /** @description The tokens that followed each other up to the one that was at work longest, the last 100. */
                critical_way?: {
                    /** @description Its id. */
                    token_id: string;
                    /** @description Its node. */
                    node_id: string;
                    /** @description How much of the run's time it took. Milliseconds. */
                    duration_ms: number;
                }[];
                /** @description How many more there are. */
                critical_way_left_out?: number;
                /** @description The same by node, the longest first, 100 at most. */
                nodes?: {
                    /** @description The node. */
                    node_id: string;
                    /** @description How much of the run's time it took. Milliseconds. */
                    duration_ms: number;
                }[];
                /** @description How many tokens were at work at which node. */
                at_work?: {
                    [key: string]: number;
                } | null;
            };
            /** @description What the node usually takes. */
            usual: {
                /** @description The workflow. */
                workflow_id: string;
                /** @description The node: of the timeout, or the one that was at work when the run's limit passed. */
                node_id: string | null;
                /** @description How many durations are known. */
                samples: number;
                /** @description Half of them were this long at most. Milliseconds. */
                p50_ms: number | null;
                /** @description 99 of 100 of them were this long at most. Milliseconds. */
                p99_ms: number | null;
                /** @description `latencies`: exact, of the last runs of a node with an adaptive limit. `metrics`: upper bounds of buckets. */
                source: ("latencies" | "metrics") | null;
                /** @description Why there are none, or what they leave out. */
                reason: string | null;
            };
            /** @description The smallest limit that would have held; null where the history does not say. Milliseconds. */
            smallest_limit_ms: number | null;
            /** @description It is longer than this. Milliseconds. */
            more_than_ms: number | null;
            /** @description How that is known, or why it is not. */
            smallest_limit_reason: string;
            /** @description The JSON Patch that sets the smallest limit in the run's workflow document. It has several operations where all transitions of a join have to say the same. */
            change: {
                /**
                 * @description What it does.
                 * @enum {string}
                 */
                op: "add" | "replace";
                /** @description A pointer into the document. */
                path: string;
                /** @description The limit, in the form that the place has: milliseconds, a duration, or the object that holds it. */
                value: number | string | Record<string, unknown>;
            }[] | null;
        };
        /** @description A run with its history, for tests, what-if and reports. */
        RunExport: {
            /**
             * @description The shape of the export.
             * @constant
             */
            format: "curfew-export/1";
            /** @description The values were left out. */
            redacted: boolean;
            /** @description The run, as `GET /v1/runs/{run_id}` shows it. */
            run: Record<string, unknown>;
            /** @description How it was started: `request`, and `parent` for a called workflow. */
            start: Record<string, unknown>;
            /** @description The workflow with its tasks, actions and called workflows, as the run has them. */
            snapshot: Record<string, unknown>;
            /** @description The workflow as it was stored. */
            document?: Record<string, unknown>;
            /** @description Snapshots of versions that the run had before, by number. */
            versions?: Record<string, unknown>;
            /** @description The settings of the deployment that count for time. */
            settings: Record<string, unknown>;
            /** @description Its gates, as `/v1/gates` shows them. */
            gates: Record<string, unknown>[];
            /** @description Signals that no node has waited for, by name. */
            signals?: Record<string, unknown>;
            /** @description Its path, as `/tokens` shows it. */
            tokens?: Record<string, unknown>[];
            /** @description Its history, as `/events` shows it. */
            events?: Record<string, unknown>[];
            /** @description Its timeouts, as `/timeouts` shows them. */
            timeouts?: Record<string, unknown>[];
        };
        /** @description What is to be other than it was. Without anything the run is replayed unchanged. */
        WhatIfBody: {
            /** @description JSON Patch (RFC 6902) on the document of the workflow. */
            changes?: ({
                /**
                 * @description What to do.
                 * @enum {string}
                 */
                op: "add" | "remove" | "replace" | "move" | "copy" | "test";
                /** @description A JSON pointer, like /nodes/2/timeout. */
                path: string;
                /** @description A JSON pointer: what `move` and `copy` take. */
                from?: string | null;
                /** @description The value of `add`, `replace` and `test`. */
                value?: unknown | null;
            }[] | null) | null;
            /** @description Another stored version of the workflow. */
            version?: (number | null) | null;
            /** @description Another input. */
            input?: unknown | null;
            /** @description Other durations of recorded calls and decisions. */
            durations?: ({
                /** @description Calls, or called workflows, of this node. */
                node?: (string | null) | null;
                /** @description Decisions at the gate of this node; `timeout`: at that of the run's limit. */
                gate?: (string | null) | null;
                /** @description From the order to the answer, or from the opening of the gate to the decision. Milliseconds, or text like 30s, 2m, 1h30m. */
                after: number | string;
            }[] | null) | null;
        };
        /** @description The run as it was, and as it would have been. */
        WhatIf: {
            /** @description The run as it was. */
            recorded: {
                status: components["schemas"]["RunStatus"];
                /** @description How long it took. Milliseconds. */
                duration_ms: number;
                /** @description Why it failed. */
                error: components["schemas"]["Failure"] | null;
                /** @description Its output. */
                output: unknown;
                /** @description Its path. Times count from the start. */
                tokens: {
                    /** @description The id of the token. */
                    token_id: string;
                    /** @description The node. */
                    node_id: string;
                    /** @description The number of its branch, in a fan-out. */
                    branch: number | null;
                    /** @description The status, as `/tokens` shows it. */
                    status: string;
                    /** @description How often it was retried after a timeout. */
                    retry_count: number;
                    /** @description When it was created. Milliseconds. */
                    created_at_ms: number | null;
                    /** @description When its last attempt began. Milliseconds. */
                    started_at_ms: number | null;
                    /** @description When it ended. Milliseconds. */
                    ended_at_ms: number | null;
                    /** @description Its limit. Milliseconds. */
                    timeout_ms: number | null;
                }[];
                /** @description Its timeouts. */
                timeouts: {
                    /** @description What timed out. */
                    scope: string;
                    /** @description The node. */
                    node_id: string | null;
                    /** @description The token. */
                    token_id: string | null;
                    /** @description The limit. Milliseconds. */
                    timeout_ms: number | null;
                    /** @description When it was enforced, after the start. Milliseconds. */
                    at_ms: number | null;
                    /** @description What was done. */
                    final_action: string;
                }[];
            };
            /** @description What took time in the recorded run, and can take another time. */
            recorded_durations: {
                /** @description The node whose calls, or called workflows, answered. */
                node?: string;
                /** @description The node of the gate that a person decided; `timeout`: that of the run's limit. */
                gate?: string;
                /** @description How many answers are recorded. */
                answers: number;
                /** @description The shortest time until one. Milliseconds. */
                shortest_ms: number;
                /** @description The longest time until one. Milliseconds. */
                longest_ms: number;
            }[];
            /** @description The run as it would have been. With `unknown` it stops there. */
            replayed: {
                status: components["schemas"]["RunStatus"];
                /** @description How long it took. Milliseconds. */
                duration_ms: number;
                /** @description Why it failed. */
                error: components["schemas"]["Failure"] | null;
                /** @description Its output. */
                output: unknown;
                /** @description Its path. Times count from the start. */
                tokens: {
                    /** @description The id of the token. */
                    token_id: string;
                    /** @description The node. */
                    node_id: string;
                    /** @description The number of its branch, in a fan-out. */
                    branch: number | null;
                    /** @description The status, as `/tokens` shows it. */
                    status: string;
                    /** @description How often it was retried after a timeout. */
                    retry_count: number;
                    /** @description When it was created. Milliseconds. */
                    created_at_ms: number | null;
                    /** @description When its last attempt began. Milliseconds. */
                    started_at_ms: number | null;
                    /** @description When it ended. Milliseconds. */
                    ended_at_ms: number | null;
                    /** @description Its limit. Milliseconds. */
                    timeout_ms: number | null;
                }[];
                /** @description Its timeouts. */
                timeouts: {
                    /** @description What timed out. */
                    scope: string;
                    /** @description The node. */
                    node_id: string | null;
                    /** @description The token. */
                    token_id: string | null;
                    /** @description The limit. Milliseconds. */
                    timeout_ms: number | null;
                    /** @description When it was enforced, after the start. Milliseconds. */
                    at_ms: number | null;
                    /** @description What was done. */
                    final_action: string;
                }[];
            };
            /** @description What is other than recorded. */
            differences: {
                /**
                 * @description What differs.
                 * @enum {string}
                 */
                what: "status" | "error" | "output" | "duration" | "token" | "retries" | "timeout";
                /** @description The node. */
                node_id?: string | null;
                /** @description The token. */
                token_id?: string | null;
                /** @description As it was; null if it was not. */
                recorded: unknown;
                /** @description As it would have been; null if it would not. */
                replayed: unknown;
                /** @description A sentence. */
                message: string;
            }[];
            /** @description Calls that the recording cannot answer for. The replay stops at the first. */
            unknown: {
                /** @description The node. */
                node_id: string;
                /** @description The token of the replay. */
                token_id: string;
                /** @description The number of the attempt. */
                epoch: number;
                /** @description When the answer would matter, after the start. Milliseconds. */
                at_ms: number;
                /** @description Why it is not known. */
                message: string;
            }[];
        };
        /** @description A workflow, and what the world around it answers. Exactly one of `workflow` and `workflow_id` is needed. */
        SimulateBody: {
            /** @description The document of the workflow. */
            workflow?: Record<string, unknown> | null;
            /** @description A stored workflow. */
            workflow_id?: string | null;
            /** @description A version of the stored workflow; the newest by default. */
            version?: number | null;
            /** @description Documents that the workflow refers to. They come before those of the catalogue. */
            documents?: {
                /** @description Workflows. */
                workflows?: Record<string, unknown>[] | null;
                /** @description Tasks. */
                tasks?: Record<string, unknown>[] | null;
                /** @description Actions. */
                actions?: Record<string, unknown>[] | null;
            } | null;
            /** @description The input of the run; `{}` by default. */
            input?: unknown | null;
            /** @description The name of the caller that starts the run, which a gate with `four_eyes` compares. */
            by?: string | null;
            /** @description The longest that the run may take: 30s, 2m, 1h30m. */
            timeout?: string | null;
            /** @description The same in milliseconds. Only one of both may be given. */
            timeout_ms?: number | null;
            /** @description When the run starts: Unix milliseconds, or ISO 8601; 1 January 2026 by default. */
            start_at?: (number | string) | null;
            /** @description What calls are answered with. */
            mocks?: {
                /** @description Calls of this node; for a node that calls a workflow, the workflow itself. */
                node?: string | null;
                /** @description Calls of this action. */
                action?: string | null;
                /** @description Calls of the step with this `ref`. */
                step?: string | null;
                /** @description How long the call takes. Milliseconds, or text like 30s, 2m, 1h30m. */
                after?: number | string | null;
                /** @description What the call returns: `result` of its step. */
                result?: unknown;
                /** @description The call fails: a class, or a class with more. */
                fail?: ("network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown") | {
                    /**
                     * @description What kind of failure it is.
                     * @enum {string}
                     */
                    class: "network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown";
                    /** @description The code; by default the one that an HTTP peer would cause. */
                    code?: string | null;
                    /** @description The message. */
                    message?: string | null;
                    /** @description What the peer asks for by `Retry-After`. Milliseconds, or text like 30s, 2m, 1h30m. */
                    retry_after?: (number | string) | null;
                } | null;
                /** @description The call never ends. */
                hang?: boolean | null;
                /** @description The text that has arrived when the call fails or is cut. */
                partial?: string | null;
                /** @description How many calls it answers; any number by default. */
                times?: number | null;
            }[] | null;
            /** @description Decisions at gates, each once. */
            people?: {
                /** @description The node of the gate, or `timeout` for the gate of the run's limit. */
                gate: string;
                /** @description After the gate has opened. Milliseconds, or text like 30s, 2m, 1h30m. */
                after?: (number | string) | null;
                /** @description What is chosen. */
                choice: string;
                /** @description What is entered. */
                input?: unknown | null;
                /** @description Who decides. */
                by?: string | null;
            }[] | null;
            /** @description Signals to the run. */
            signals?: {
                /** @description The name of the signal. */
                name: string;
                /** @description After the start. Milliseconds, or text like 30s, 2m, 1h30m. */
                at?: (number | string) | null;
                /** @description What it carries. */
                payload?: unknown | null;
            }[] | null;
            /** @description What random numbers follow from: jitter and faults. 0 by default. */
            seed?: number | null;
            /** @description What goes wrong around the run. Without any odds the seed draws them. */
            faults?: {
                /** @description Faults happen in so many first events; 150 by default. */
                events?: number | null;
                /** @description The object crashes after a decision and before its commit. In percent. */
                crash_before_commit?: number | null;
                /** @description The object crashes after a commit, before or while its commands are performed. In percent. */
                crash_after_commit?: number | null;
                /** @description The object leaves memory between two events. In percent. */
                eviction?: number | null;
                /** @description The connection to an executor breaks. In percent. */
                lost?: number | null;
                /** @description An executor stops without a sign, while its connection stays open. In percent. */
                frozen?: number | null;
                /** @description An executor works on and never reports. In percent. */
                never_answered?: number | null;
                /** @description A message comes twice. In percent. */
                duplicated?: number | null;
                /** @description A message takes minutes. In percent. */
                slow?: number | null;
                /** @description An alarm rings late. In percent. */
                late_alarm?: number | null;
                /** @description An alarm rings early. In percent. */
                early_alarm?: number | null;
                /** @description An alarm rings twice. In percent. */
                repeated_alarm?: number | null;
                /** @description A message between runs is lost, or its response. In percent. */
                message_lost?: number | null;
                /** @description A message of the task queue is lost. In percent. */
                queue_message_lost?: number | null;
                /** @description The response to a claim is lost. In percent. */
                claim_response_lost?: number | null;
                /** @description A consumer of the queue stops after its claim. In percent. */
                consumer_stops?: number | null;
                /** @description A consumer of the queue sends no heartbeats. In percent. */
                no_heartbeats?: number | null;
                /** @description The database refuses a commit. In percent. */
                commit_fails?: number | null;
            } | null;
            /** @description Tasks go by the queue, as with `CURFEW_QUEUE`; by default as the deployment does it. */
            queue?: boolean | null;
            /** @description The simulation stops so long after the start. Milliseconds, or text like 30s, 2m, 1h30m. */
            until?: (number | string) | null;
        };
        /** @description The run at its end, or where the simulation stopped. */
        Simulation: {
            run: components["schemas"]["Run"];
            /** @description Its path, as `/tokens` shows it. */
            tokens: components["schemas"]["Token"][];
            /** @description Its history, as `/events` shows it. */
            events: components["schemas"]["Event"][];
            /** @description Its timeouts, as `/timeouts` shows them. */
            timeouts: components["schemas"]["Timeout"][];
            /** @description The runs that it called. */
            children?: {
                run: components["schemas"]["Run"];
                /** @description Its path, as `/tokens` shows it. */
                tokens: components["schemas"]["Token"][];
                /** @description Its history, as `/events` shows it. */
                events: components["schemas"]["Event"][];
                /** @description Its timeouts, as `/timeouts` shows them. */
                timeouts: components["schemas"]["Timeout"][];
            }[];
            /** @description The calls that were made, in order. */
            calls: {
                /** @description When it began, after the start. Milliseconds. */
                at_ms: number;
                /** @description How long it took; null while it is open. Milliseconds. */
                duration_ms: number | null;
                /**
                 * @description How it ended.
                 * @enum {string}
                 */
                outcome: "open" | "result" | "failed" | "timed_out" | "aborted";
                /**
                 * @description The class of its failure.
                 * @enum {string}
                 */
                class?: "network" | "server_error" | "provider_transient" | "rate_limited" | "timeout" | "bad_request" | "auth" | "not_found" | "validation" | "assertion" | "permanent" | "breaker_open" | "unknown";
                /** @description The run that made it. */
                run_id: string;
                /** @description The node; empty for an emitted event. */
                node_id: string;
                /** @description The token. */
                token_id: string;
                /** @description The attempt; 0 for an emitted event. */
                epoch: number;
                /** @description The kind of the action, `workflow` or `emit_event`. */
                kind: string;
                /** @description The `ref` of the step. */
                step?: string;
                /** @description The id of the action. */
                action?: string | null;
                /** @description What the call carries as `Idempotency-Key`. */
                idempotency_key?: string;
                /** @description The run that a mock stands for. */
                child_run_id?: string;
                /** @description The name of the emitted event. */
                event?: string;
                /** @description The key of the emitted event. */
                key?: string;
                /** @description What is sent: method, URL and body without headers, or what the kind has instead. */
                request: unknown;
            }[];
            /** @description How long the run took. Milliseconds. */
            virtual_ms: number;
            /** @description What the run would cost on Cloudflare, beyond the included amounts, without the price of its peers. */
            dollars: number;
            /** @description What an open run waits for that never came. */
            waits_for?: {
                /**
                 * @description What kind of thing.
                 * @enum {string}
                 */
                for: "decision" | "signal" | "callback" | "call" | "time";
                /** @description The run. */
                run_id?: string;
                /** @description The node. */
                node_id?: string | null;
                /** @description The gate. */
                gate_id?: string;
                /** @description The choices of the gate. */
                choices?: string[];
                /** @description The name of the signal. */
                signal?: string;
                /** @description The step of the call. */
                step?: string | null;
                /** @description The kind of the call. */
                kind?: string | null;
                /** @description The entry of `people` or `signals` that would move it on. */
                add?: unknown;
            }[];
            /** @description With `faults`: what must hold for any run and did not. Empty, unless Curfew has a bug. */
            violations?: string[];
            /** @description With `faults`: what went wrong. */
            faults?: {
                /** @description When, after the start. Milliseconds. */
                at_ms: number;
                /** @description Which one. */
                fault: string;
            }[];
        };
        /** @description How to start a run. */
        StartBody: {
            /** @description The id of the new run. With the same id and the same request the same run is returned. A random one is made by default. */
            run_id?: string | null;
            /** @description A version of the workflow. */
            version?: number | null;
            /** @description The input of the run; `{}` by default. */
            input?: unknown | null;
            /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
            by?: string | null;
            /** @description The longest that the run may take: 30s, 2m, 1h30m. */
            timeout?: string;
            /** @description The same in milliseconds. Only one of both may be given. */
            timeout_ms?: number;
        };
        /** @description Several starts. */
        BatchBody: {
            /** @description The starts. What is wrong with one of them does not affect the others. */
            items: (components["schemas"]["BatchItem"] | unknown)[];
        };
        /** @description A start of a batch. */
        BatchItem: {
            /** @description The workflow to run. */
            workflow_id: string;
            /** @description The id of the new run. With the same id and the same request the same run is returned. A random one is made by default. */
            run_id?: string | null;
            /** @description A version of the workflow. */
            version?: number | null;
            /** @description The input of the run; `{}` by default. */
            input?: unknown | null;
            /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
            by?: string | null;
            /** @description The longest that the run may take: 30s, 2m, 1h30m. */
            timeout?: string;
            /** @description The same in milliseconds. Only one of both may be given. */
            timeout_ms?: number;
        };
        /** @description The name of the sender. */
        ByBody: {
            /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
            by?: string | null;
        };
        /** @description Why the run is cancelled. */
        CancelBody: {
            /** @description Why. It is kept on the run; 4 KiB at most. */
            reason?: string | null;
            /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
            by?: string | null;
        };
        /** @description How much longer the run may take: exactly one of the three. */
        ExtendBody: {
            /** @description So much longer. Milliseconds. */
            by_ms?: number;
            /** @description So much longer: 30s, 2m, 1h30m. */
            by?: string;
            /** @description Until then: Unix milliseconds, or ISO 8601. Null counts as absent. */
            until?: number | string | null;
        } & ({
            until?: null;
        } | {
            until?: null;
        } | {
            until: number | string;
            by?: null;
            by_ms?: null;
        });
        /** @description How the run goes on. */
        RetryBody: {
            /**
             * @description `retry_step`: go on from what failed. `discard_and_retry`: drop what the failed steps did. `escalate`: ask a person first.
             * @enum {string}
             */
            mode: "retry_step" | "discard_and_retry" | "escalate";
            /** @description Only the writes of this token are discarded. */
            token_id?: string | null;
            /** @description A version of the workflow. */
            version?: number | null;
            /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
            by?: string | null;
        };
        /** @description Where the run begins again. */
        RestartBody: {
            /** @description From this node, with the state as it was then. From the start by default. */
            from_node_id?: string | null;
            /** @description A version of the workflow. */
            version?: number | null;
            /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
            by?: string | null;
        };
        /** @description The decision. */
        DecisionBody: {
            /** @description One of the choices of the gate. */
            choice: string;
            /** @description What the `input_schema` of the gate asks for. */
            input?: unknown | null;
            /** @description A remark. */
            comment?: string | null;
            /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
            by?: string | null;
        };
        /** @description Which runs to cancel. */
        BulkCancelBody: {
            /** @description Which runs, by the filters of the list. All of them have to match; at least one is needed. */
            filter?: {
                /** @description One status, several with commas, or a list. */
                status?: string | ("running" | "waiting" | "paused" | "compensating" | "completed" | "failed" | "timed_out" | "cancelled")[];
                /** @description The id of the workflow. */
                workflow?: string;
                /** @description A tag of the workflow. */
                tag?: string;
                /** @description Runs that started then or later. Unix milliseconds. */
                since?: number | string;
                /** @description Runs that started then or earlier. Unix milliseconds. */
                until?: number | string;
                /** @description The run that called it. */
                parent?: string;
                /** @description How the ids begin. */
                id_prefix?: string;
                /** @description Every run. No other filter may be given with it. */
                all?: boolean | null;
            };
            /** @description Which runs, by their ids. */
            ids?: string[];
            /** @description The body of the control. */
            with?: {
                /** @description Why. It is kept on the run; 4 KiB at most. */
                reason?: string | null;
                /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
                by?: string | null;
            } | null;
        } & (unknown | unknown);
        /** @description Which runs to pause. */
        BulkPauseBody: {
            /** @description Which runs, by the filters of the list. All of them have to match; at least one is needed. */
            filter?: {
                /** @description One status, several with commas, or a list. */
                status?: string | ("running" | "waiting" | "paused" | "compensating" | "completed" | "failed" | "timed_out" | "cancelled")[];
                /** @description The id of the workflow. */
                workflow?: string;
                /** @description A tag of the workflow. */
                tag?: string;
                /** @description Runs that started then or later. Unix milliseconds. */
                since?: number | string;
                /** @description Runs that started then or earlier. Unix milliseconds. */
                until?: number | string;
                /** @description The run that called it. */
                parent?: string;
                /** @description How the ids begin. */
                id_prefix?: string;
                /** @description Every run. No other filter may be given with it. */
                all?: boolean | null;
            };
            /** @description Which runs, by their ids. */
            ids?: string[];
            /** @description The body of the control. */
            with?: {
                /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
                by?: string | null;
            } | null;
        } & (unknown | unknown);
        /** @description Which runs to resume. */
        BulkResumeBody: {
            /** @description Which runs, by the filters of the list. All of them have to match; at least one is needed. */
            filter?: {
                /** @description One status, several with commas, or a list. */
                status?: string | ("running" | "waiting" | "paused" | "compensating" | "completed" | "failed" | "timed_out" | "cancelled")[];
                /** @description The id of the workflow. */
                workflow?: string;
                /** @description A tag of the workflow. */
                tag?: string;
                /** @description Runs that started then or later. Unix milliseconds. */
                since?: number | string;
                /** @description Runs that started then or earlier. Unix milliseconds. */
                until?: number | string;
                /** @description The run that called it. */
                parent?: string;
                /** @description How the ids begin. */
                id_prefix?: string;
                /** @description Every run. No other filter may be given with it. */
                all?: boolean | null;
            };
            /** @description Which runs, by their ids. */
            ids?: string[];
            /** @description The body of the control. */
            with?: {
                /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
                by?: string | null;
            } | null;
        } & (unknown | unknown);
        /** @description Which runs to extend, and by how much. */
        BulkExtendBody: {
            /** @description Which runs, by the filters of the list. All of them have to match; at least one is needed. */
            filter?: {
                /** @description One status, several with commas, or a list. */
                status?: string | ("running" | "waiting" | "paused" | "compensating" | "completed" | "failed" | "timed_out" | "cancelled")[];
                /** @description The id of the workflow. */
                workflow?: string;
                /** @description A tag of the workflow. */
                tag?: string;
                /** @description Runs that started then or later. Unix milliseconds. */
                since?: number | string;
                /** @description Runs that started then or earlier. Unix milliseconds. */
                until?: number | string;
                /** @description The run that called it. */
                parent?: string;
                /** @description How the ids begin. */
                id_prefix?: string;
                /** @description Every run. No other filter may be given with it. */
                all?: boolean | null;
            };
            /** @description Which runs, by their ids. */
            ids?: string[];
            /** @description How much longer the run may take: exactly one of the three. */
            with: {
                /** @description So much longer. Milliseconds. */
                by_ms?: number;
                /** @description So much longer: 30s, 2m, 1h30m. */
                by?: string;
                /** @description Until then: Unix milliseconds, or ISO 8601. Null counts as absent. */
                until?: number | string | null;
            } & ({
                until?: null;
            } | {
                until?: null;
            } | {
                until: number | string;
                by?: null;
                by_ms?: null;
            });
        } & (unknown | unknown);
        /** @description Which runs to retry, and how. */
        BulkRetryBody: {
            /** @description Which runs, by the filters of the list. All of them have to match; at least one is needed. */
            filter?: {
                /** @description One status, several with commas, or a list. */
                status?: string | ("running" | "waiting" | "paused" | "compensating" | "completed" | "failed" | "timed_out" | "cancelled")[];
                /** @description The id of the workflow. */
                workflow?: string;
                /** @description A tag of the workflow. */
                tag?: string;
                /** @description Runs that started then or later. Unix milliseconds. */
                since?: number | string;
                /** @description Runs that started then or earlier. Unix milliseconds. */
                until?: number | string;
                /** @description The run that called it. */
                parent?: string;
                /** @description How the ids begin. */
                id_prefix?: string;
                /** @description Every run. No other filter may be given with it. */
                all?: boolean | null;
            };
            /** @description Which runs, by their ids. */
            ids?: string[];
            /** @description The body of the control. */
            with: {
                /**
                 * @description `retry_step`: go on from what failed. `discard_and_retry`: drop what the failed steps did. `escalate`: ask a person first.
                 * @enum {string}
                 */
                mode: "retry_step" | "discard_and_retry" | "escalate";
                /** @description The name of the sender. It counts in development only, where senders have no name of their own. */
                by?: string | null;
            };
        } & (unknown | unknown);
        /** @description A problem of a document or a body. */
        Problem: {
            /** @description Where it is: a JSON pointer. */
            pointer: string;
            /** @description A stable code. */
            code: string;
            /** @description What is wrong and what to do. */
            message: string;
            /**
             * @description A document with an error is refused; one with warnings only is stored.
             * @enum {string}
             */
            severity?: "error" | "warning";
        };
        /** @description Why a request was refused. */
        ErrorBody: {
            /**
             * @description A stable code.
             * @enum {string}
             */
            code: "access_unavailable" | "auth_not_configured" | "body_too_large" | "callback_key_unreadable" | "cross_origin" | "decision_needed" | "event_limit" | "forbidden" | "four_eyes" | "gate_closed" | "internal" | "invalid_document" | "invalid_input" | "invalid_json" | "invalid_request" | "key_used" | "limit_exceeded" | "limit_of_parent" | "method_not_allowed" | "no_mock" | "no_public_url" | "no_timeout" | "no_way_back" | "not_found" | "not_local" | "not_migrated" | "not_paused" | "not_replayable" | "not_resumable" | "not_the_child" | "not_the_parent" | "other_build" | "over_hard_limit" | "paused" | "paused_by_parent" | "rate_limited" | "run_ending" | "run_exists" | "run_finished" | "run_not_ended" | "stale_attempt" | "timeout" | "too_many_signals" | "too_many_watchers" | "unauthorized" | "under_minimum" | "unknown_signal" | "unsupported_media_type" | "version_does_not_fit";
            /** @description What is wrong and what to do. */
            message: string;
            /** @description Where in the body it is: a JSON pointer. */
            pointer?: string;
            /** @description More about it; what it is depends on the code. */
            details?: components["schemas"]["Problem"][] | {
                /** @description The node. */
                node_id: string | null;
                /** @description The token. */
                token_id?: string;
                /** @description What does not fit. */
                reason: string;
            }[] | {
                /** @description An entry of `mocks`. */
                mock: unknown;
            } | {
                /** @description The parameter. */
                parameter: string;
                /** @description The known names. */
                known: string[];
                /** @description The known name that is most like it. */
                nearest: string | null;
            } | {
                /** @description Its id. */
                gate_id: string | null;
            } | {
                /** @description The status of the gate. */
                status: string;
                /** @description How it was decided. */
                decision: components["schemas"]["Decision"] | null;
            } | {
                /** @description The first event of the chain. */
                root_event: {
                    /** @description Its name. */
                    event: string;
                    /** @description Its key. */
                    key: string;
                };
                /** @description How many runs an event may start. */
                limit: number;
            };
        };
        /** @description The answer to a request that was refused. */
        Error: {
            error: components["schemas"]["ErrorBody"];
        };
        /** @description Where a document was stored. */
        StoredDocument: {
            /** @description The id of the document. */
            id: string;
            /** @description Its version. */
            version: number;
            /** @description What may not be meant. */
            warnings: components["schemas"]["Problem"][];
        };
        /** @description What to analyze: the stored document, or another one. */
        AnalyzeBody: {
            /** @description A workflow document, which is not stored. Without an id it gets that of the path. */
            document?: Record<string, unknown> | null;
        };
        /** @description What is known of every run of a workflow before it starts. */
        Analysis: {
            /** @description Problems for which the document is refused. */
            errors: components["schemas"]["Problem"][];
            /** @description What may not be meant, or will go wrong. */
            warnings: components["schemas"]["Problem"][];
            /** @description What a run can take at most; none of a document with errors. */
            facts: components["schemas"]["Facts"] | null;
        };
        /** @description What one attempt of a run can take that nobody pauses, extends, retries or restarts, with executors and messages on time. */
        Facts: {
            /** @description Whether every run ends without help. */
            ends: {
                /** @description Whether it does. */
                surely: boolean;
                /** @description What ends it, or why that is not sure. */
                reason: string;
                /** @description The node that makes it unsure: a JSON pointer. */
                pointer?: string;
            };
            /** @description The longest a run can take; none if there is no bound. */
            duration_max_ms: number | null;
            /** @description The most tokens that are alive at once. */
            tokens_alive_max: number;
            /** @description The most tokens that are created. */
            tokens_max: number;
            /** @description Rows that are written, with those of called runs. */
            rows_written: {
                /** @description If all goes well. */
                happy: number | null;
                /** @description At most; none if there is no bound. */
                worst: number | null;
            };
            /** @description What a run costs on the platform, with the runs it calls. */
            dollars: {
                /** @description If all goes well. */
                happy: number | null;
                /** @description At most; none if there is no bound. */
                worst: number | null;
            };
            /** @description The longest time in which nothing is decided. */
            longest_wait: {
                /** @description Its length; none if there is no bound. */
                ms: number | null;
                /** @description What waits so long: a JSON pointer. */
                pointer?: string;
            };
        };
        /** @description A document of the catalogue. */
        Document: {
            /** @description The id of the document. */
            id: string;
            /** @description The version that was read. */
            version: number;
            /** @description When that version was stored. Unix milliseconds. */
            created_at: number;
            /** @description The name of the caller that stored it. */
            created_by?: string;
            /** @description The document, as it was stored. */
            document: Record<string, unknown>;
        };
        /** @description A document in a list. */
        DocumentSummary: {
            /** @description The id of the document. */
            id: string;
            /** @description Its newest version. */
            version: number;
            /** @description When that version was stored. Unix milliseconds. */
            created_at: number;
            /** @description The name of the caller that stored it. */
            created_by?: string;
        };
        /** @description What each start of a batch was answered with. */
        BatchAnswer: {
            /** @description In the order of the request. */
            items: ({
                /**
                 * @description 201: the run is new. 200: it existed with the same request.
                 * @enum {unknown}
                 */
                status: 200 | 201;
                /** @description The run. Cut to its id where the answer would be too large. */
                run: components["schemas"]["Run"] | {
                    /** @description Its id. */
                    id: string;
                    /**
                     * @description It was cut.
                     * @constant
                     */
                    truncated: true;
                };
            } | {
                /** @description The status that the start alone would have got. */
                status: number;
                error: components["schemas"]["ErrorBody"];
            })[];
        };
        /** @description A bulk operation. */
        Operation: {
            /** @description The id of the operation. */
            id: string;
            /**
             * @description What is done to each run.
             * @enum {string}
             */
            kind: "cancel" | "pause" | "resume" | "extend" | "retry";
            /**
             * @description Whether it is done.
             * @enum {string}
             */
            status: "running" | "completed";
            /** @description When it was asked for. Unix milliseconds. */
            created_at: number;
            /** @description The name of the caller that asked for it. */
            created_by: string | null;
            /** @description When it was done. Unix milliseconds. */
            ended_at: number | null;
            /** @description The number of runs. Null until the end if a filter selects them. */
            total: number | null;
            /** @description Runs that are now as the operation asks. */
            done: number;
            /** @description Runs that refused it. */
            failed: number;
            /** @description Runs that had nothing to do. */
            skipped: number;
            /** @description The first 100 refusals. */
            errors: {
                /** @description The run. */
                run_id: string;
                /** @description The code of the refusal. */
                code: string;
                /** @description Why, cut at 300 characters. */
                message: string;
            }[];
        };
        /** @description What an event has started. */
        EventAnswer: {
            /** @description The name of the event. */
            event: string;
            /** @description Its key. Publish the event again with it, and nothing is started twice. */
            key: string;
            /** @description The runs that it has started, now or before. */
            runs: {
                /** @description The run. */
                id: string;
                /** @description Its workflow. */
                workflow_id: string;
                /** @description Whether it was started now. */
                created: boolean;
            }[];
            /** @description Workflows that could not be started. */
            refused: {
                /** @description The workflow. */
                workflow_id: string;
                error: components["schemas"]["ErrorBody"];
            }[];
        };
        /** @description A circuit breaker. */
        Breaker: {
            /** @description Its key. */
            key: string;
            /**
             * @description `open`: calls are refused. `half_open`: one call is tried. `escalated`: it was open for too long.
             * @enum {string}
             */
            state: "closed" | "open" | "half_open" | "escalated";
            /** @description Failures in a row. */
            failures: number;
            /** @description When it opened. Unix milliseconds. */
            opened_at: number | null;
            /** @description When the next call is tried. Unix milliseconds. */
            trial_at: number | null;
            /** @description When it was escalated. Unix milliseconds. */
            escalated_at: number | null;
            /** @description When it last changed. Unix milliseconds. */
            updated_at: number;
        };
        /** @description A notification about an event of the run. */
        Notification: {
            /** @description Its id, the same when it is sent again. */
            id: string;
            /** @description Where it is sent, without what may be a credential. */
            target: string;
            /**
             * @description The kind of its event, or `notifications_skipped`.
             * @enum {string}
             */
            kind: "run_started" | "run_completed" | "run_compensating" | "run_failed" | "run_timed_out" | "run_cancelled" | "run_paused" | "run_resumed" | "run_extended" | "run_retried" | "run_restarted" | "token_created" | "token_dispatched" | "token_completed" | "token_failed" | "token_timed_out" | "token_cancelled" | "token_retried" | "fan_out_started" | "fan_in_started" | "fan_in_completed" | "sync_timed_out" | "gate_opened" | "gate_reminded" | "gate_decided" | "gate_timed_out" | "late_result_discarded" | "deadline_warning" | "signal_received" | "subworkflow_started" | "subworkflow_ended" | "subworkflow_paused" | "subworkflow_resumed" | "limit_exceeded" | "dispatch_rung_again" | "attempt_reaped" | "notifications_skipped";
            /** @description The number of its event. */
            seq: number;
            /**
             * @description `failed`: given up after 24 h. `refused`: the target wants no more, or its address is not called.
             * @enum {string}
             */
            status: "pending" | "delivered" | "failed" | "refused";
            /** @description How often an attempt was answered. */
            attempts: number;
            /** @description When its event happened. Unix milliseconds. */
            created_at: number;
            /** @description Why the last attempt failed. */
            last_error?: string;
            /** @description When the next attempt is made. Unix milliseconds. */
            next_attempt_at?: number;
            /** @description When it was delivered. Unix milliseconds. */
            delivered_at?: number;
            /** @description When it was given up or refused. Unix milliseconds. */
            ended_at?: number;
            /** @description Events that were not posted one by one, because too many waited. */
            skipped?: {
                /** @description How many. */
                count: number;
                /** @description The number of the first one. */
                first_seq: number;
                /** @description The number of the last one. */
                last_seq: number;
                /** @description How many of each kind. */
                kinds: {
                    [key: string]: number;
                };
            };
        };
        /** @description The Worker answers. */
        Health: {
            /**
             * @description Always `ok`.
             * @constant
             */
            status: "ok";
            /** @description The version of Curfew. */
            version: string;
        };
        /** @description What the credential of a request may do. */
        Identity: {
            /** @description The name of the credential. Null in development, where requests need none. */
            name: string | null;
            /** @description Its roles, with those that they include. */
            roles: ("read" | "start" | "decide" | "operate" | "admin")[];
            /** @description The workflows that it may see; null for all. */
            workflows: string[] | null;
        };
        /** @description Nothing to say. */
        Empty: Record<string, unknown>;
        /** @description Any JSON. */
        Any: unknown;
    };
    responses: {
        /** @description `invalid_json`: The body is not JSON. `invalid_request`: A name breaks its rule, or a field or parameter is unknown. Nothing was done. */
        "400.invalid_json.invalid_request.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_json" | "invalid_request";
                    };
                };
            };
        };
        /** @description `invalid_request`: A name breaks its rule, or a field or parameter is unknown. Nothing was done. */
        "400.invalid_request": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_request";
                    };
                };
            };
        };
        /** @description `invalid_request`: A name breaks its rule, or a field or parameter is unknown. Nothing was done. */
        "400.invalid_request.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_request";
                    };
                };
            };
        };
        /** @description `unauthorized`: The request has no valid credential. */
        "401.unauthorized": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "unauthorized";
                    };
                };
            };
        };
        /** @description `unauthorized`: The request has no valid credential. */
        "401.unauthorized.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "unauthorized";
                    };
                };
            };
        };
        /** @description `forbidden`: The role of the credential is too low, or the workflow is not one of those that it is bound to. `not_local`: Without tokens only requests to this machine are answered. `cross_origin`: A page of another origin sent the request. */
        "403.forbidden.not_local.cross_origin": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "forbidden" | "not_local" | "cross_origin";
                    };
                };
            };
        };
        /** @description `forbidden`: The role of the credential is too low, or the workflow is not one of those that it is bound to. `not_local`: Without tokens only requests to this machine are answered. `cross_origin`: A page of another origin sent the request. */
        "403.forbidden.not_local.cross_origin.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "forbidden" | "not_local" | "cross_origin";
                    };
                };
            };
        };
        /** @description `forbidden`: The role of the credential is too low, or the workflow is not one of those that it is bound to. `not_local`: Without tokens only requests to this machine are answered. `cross_origin`: A page of another origin sent the request. `four_eyes`: The gate has `four_eyes`, and the one who started the run may not decide. */
        "403.forbidden.not_local.cross_origin.four_eyes.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "forbidden" | "not_local" | "cross_origin" | "four_eyes";
                    };
                };
            };
        };
        /** @description `not_found`: There is no such thing, or no such path. */
        "404.not_found": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "not_found";
                    };
                };
            };
        };
        /** @description `not_found`: There is no such thing, or no such path. */
        "404.not_found.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "not_found";
                    };
                };
            };
        };
        /** @description `not_found`: There is no such thing, or no such path. `unknown_signal`: No wait of the workflow is for this signal. */
        "404.not_found.unknown_signal.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "not_found" | "unknown_signal";
                    };
                };
            };
        };
        /** @description `method_not_allowed`: The path takes another method; see the header `Allow`. */
        "405.method_not_allowed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                Allow: components["headers"]["Allow"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "method_not_allowed";
                    };
                };
            };
        };
        /** @description `key_used`: An event with this key and another payload was published before. Choose another key. */
        "409.key_used.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "key_used";
                    };
                };
            };
        };
        /** @description `limit_exceeded`: Too many workflows have the same trigger. */
        "409.limit_exceeded.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "limit_exceeded";
                    };
                };
            };
        };
        /** @description `run_ending`: The end of the run is decided; its compensations and end handlers run. `run_not_ended`: The run has not ended. `not_resumable`: The run cannot be retried; the message says why. `version_does_not_fit`: The run cannot go on with that version; `details` says where. */
        "409.run_ending.run_not_ended.not_resumable.version_does_not_fit.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_ending" | "run_not_ended" | "not_resumable" | "version_does_not_fit";
                    };
                };
            };
        };
        /** @description `run_ending`: The end of the run is decided; its compensations and end handlers run. `version_does_not_fit`: The run cannot go on with that version; `details` says where. `no_way_back`: The run cannot go back to that node; the message says why. */
        "409.run_ending.version_does_not_fit.no_way_back.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_ending" | "version_does_not_fit" | "no_way_back";
                    };
                };
            };
        };
        /** @description `run_exists`: The run id was used with another request. Choose another one. */
        "409.run_exists.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_exists";
                    };
                };
            };
        };
        /** @description `run_finished`: The run has ended and cannot be changed. */
        "409.run_finished.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_finished";
                    };
                };
            };
        };
        /** @description `run_finished`: The run has ended and cannot be changed. `run_ending`: The end of the run is decided; its compensations and end handlers run. */
        "409.run_finished.run_ending.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_finished" | "run_ending";
                    };
                };
            };
        };
        /** @description `run_finished`: The run has ended and cannot be changed. `run_ending`: The end of the run is decided; its compensations and end handlers run. `gate_closed`: The gate was decided before; `details` has the decision. `no_timeout`: The run has no limit that could be extended. `limit_of_parent`: The limit is that of the node that called the run. */
        "409.run_finished.run_ending.gate_closed.no_timeout.limit_of_parent.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_finished" | "run_ending" | "gate_closed" | "no_timeout" | "limit_of_parent";
                    };
                };
            };
        };
        /** @description `run_finished`: The run has ended and cannot be changed. `run_ending`: The end of the run is decided; its compensations and end handlers run. `no_timeout`: The run has no limit that could be extended. `limit_of_parent`: The limit is that of the node that called the run. */
        "409.run_finished.run_ending.no_timeout.limit_of_parent.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_finished" | "run_ending" | "no_timeout" | "limit_of_parent";
                    };
                };
            };
        };
        /** @description `run_finished`: The run has ended and cannot be changed. `run_ending`: The end of the run is decided; its compensations and end handlers run. `not_paused`: The run is not paused. `paused_by_parent`: The run is paused with the run that called it. Resume that one. `decision_needed`: The run waits for a decision. Decide its gate, or extend the run. */
        "409.run_finished.run_ending.not_paused.paused_by_parent.decision_needed.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_finished" | "run_ending" | "not_paused" | "paused_by_parent" | "decision_needed";
                    };
                };
            };
        };
        /** @description `run_finished`: The run has ended and cannot be changed. `run_ending`: The end of the run is decided; its compensations and end handlers run. `paused`: The run is paused, and nothing new begins. `stale_attempt`: The callback came too late, or twice. */
        "409.run_finished.run_ending.paused.stale_attempt.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_finished" | "run_ending" | "paused" | "stale_attempt";
                    };
                };
            };
        };
        /** @description `run_not_ended`: The run has not ended. */
        "409.run_not_ended.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "run_not_ended";
                    };
                };
            };
        };
        /** @description `body_too_large`: The body is larger than 1 MiB. */
        "413.body_too_large.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "body_too_large";
                    };
                };
            };
        };
        /** @description `body_too_large`: The body is larger than 1 MiB. `limit_exceeded`: A value is larger than its limit; the message has both. */
        "413.body_too_large.limit_exceeded.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "body_too_large" | "limit_exceeded";
                    };
                };
            };
        };
        /** @description `unsupported_media_type`: The body of a browser must be `application/json`. */
        "415.unsupported_media_type.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "unsupported_media_type";
                    };
                };
            };
        };
        /** @description `invalid_document`: The document has problems; `details` has all of them. `invalid_request`: A value is wrong; `pointer` says where and `details` has every problem. `invalid_input`: The input does not fit the `input_schema` of the workflow. `limit_exceeded`: The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what. `over_hard_limit`: The timeout is longer than the hard limit of the preset. `under_minimum`: The timeout is shorter than the minimum of the preset. `no_mock`: The workflow makes a call that no mock answers; `details` has the mock to add. */
        "422.invalid_document.invalid_request.invalid_input.limit_exceeded.over_hard_limit.under_minimum.no_mock.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_document" | "invalid_request" | "invalid_input" | "limit_exceeded" | "over_hard_limit" | "under_minimum" | "no_mock";
                    };
                };
            };
        };
        /** @description `invalid_document`: The document has problems; `details` has all of them. `invalid_request`: A value is wrong; `pointer` says where and `details` has every problem. `invalid_input`: The input does not fit the `input_schema` of the workflow. `limit_exceeded`: The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what. `over_hard_limit`: The timeout is longer than the hard limit of the preset. `under_minimum`: The timeout is shorter than the minimum of the preset. `no_public_url`: The workflow has an async action, and the deployment has no public URL for its callbacks. */
        "422.invalid_document.invalid_request.invalid_input.limit_exceeded.over_hard_limit.under_minimum.no_public_url.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_document" | "invalid_request" | "invalid_input" | "limit_exceeded" | "over_hard_limit" | "under_minimum" | "no_public_url";
                    };
                };
            };
        };
        /** @description `invalid_document`: The document has problems; `details` has all of them. `invalid_request`: A value is wrong; `pointer` says where and `details` has every problem. `invalid_input`: The input does not fit the `input_schema` of the workflow. `limit_exceeded`: The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what. `over_hard_limit`: The timeout is longer than the hard limit of the preset. `under_minimum`: The timeout is shorter than the minimum of the preset. `not_replayable`: The history of the run cannot be played again; the message says why. */
        "422.invalid_document.invalid_request.invalid_input.limit_exceeded.over_hard_limit.under_minimum.not_replayable.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_document" | "invalid_request" | "invalid_input" | "limit_exceeded" | "over_hard_limit" | "under_minimum" | "not_replayable";
                    };
                };
            };
        };
        /** @description `invalid_document`: The document has problems; `details` has all of them. `invalid_request`: A value is wrong; `pointer` says where and `details` has every problem. `limit_exceeded`: The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what. */
        "422.invalid_document.invalid_request.limit_exceeded.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_document" | "invalid_request" | "limit_exceeded";
                    };
                };
            };
        };
        /** @description `invalid_document`: The document has problems; `details` has all of them. `invalid_request`: A value is wrong; `pointer` says where and `details` has every problem. `limit_exceeded`: The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what. `no_public_url`: The workflow has an async action, and the deployment has no public URL for its callbacks. */
        "422.invalid_document.invalid_request.limit_exceeded.no_public_url.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_document" | "invalid_request" | "limit_exceeded" | "no_public_url";
                    };
                };
            };
        };
        /** @description `invalid_request`: A value is wrong; `pointer` says where and `details` has every problem. `limit_exceeded`: The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what. */
        "422.invalid_request.limit_exceeded.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "invalid_request" | "limit_exceeded";
                    };
                };
            };
        };
        /** @description `limit_exceeded`: The body is nested too deeply, the document is too large, or a simulation takes too much; the message says what. */
        "422.limit_exceeded.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "limit_exceeded";
                    };
                };
            };
        };
        /** @description `rate_limited`: Too many requests, or too many wrong credentials. Repeat it after `Retry-After`. */
        "429.rate_limited": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "rate_limited";
                    };
                };
            };
        };
        /** @description `rate_limited`: Too many requests, or too many wrong credentials. Repeat it after `Retry-After`. */
        "429.rate_limited.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "rate_limited";
                    };
                };
            };
        };
        /** @description `too_many_signals`: The run keeps as many signals as it may. Send it again later. `rate_limited`: Too many requests, or too many wrong credentials. Repeat it after `Retry-After`. */
        "429.too_many_signals.rate_limited.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "too_many_signals" | "rate_limited";
                    };
                };
            };
        };
        /** @description `too_many_watchers`: As many clients as may watch the run already. Try again later. `rate_limited`: Too many requests, or too many wrong credentials. Repeat it after `Retry-After`. */
        "429.too_many_watchers.rate_limited.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "too_many_watchers" | "rate_limited";
                    };
                };
            };
        };
        /** @description `internal`: Something failed inside Curfew and was logged. The request may or may not have taken effect. */
        "500.internal": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "internal";
                    };
                };
            };
        };
        /** @description `internal`: Something failed inside Curfew and was logged. The request may or may not have taken effect. */
        "500.internal.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "internal";
                    };
                };
            };
        };
        /** @description `auth_not_configured`: The deployment has no credentials; the message says what to set. `access_unavailable`: The keys of Cloudflare Access cannot be fetched. */
        "503.auth_not_configured.access_unavailable": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "auth_not_configured" | "access_unavailable";
                    };
                };
            };
        };
        /** @description `auth_not_configured`: The deployment has no credentials; the message says what to set. `access_unavailable`: The keys of Cloudflare Access cannot be fetched. `not_migrated`: The database lacks a table; the message says what to do. */
        "503.auth_not_configured.access_unavailable.not_migrated.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "auth_not_configured" | "access_unavailable" | "not_migrated";
                    };
                };
            };
        };
        /** @description `auth_not_configured`: The deployment has no credentials; the message says what to set. `access_unavailable`: The keys of Cloudflare Access cannot be fetched. `other_build`: A new version is being deployed. Nothing was done; repeat the request. */
        "503.auth_not_configured.access_unavailable.other_build.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "auth_not_configured" | "access_unavailable" | "other_build";
                    };
                };
            };
        };
        /** @description `auth_not_configured`: The deployment has no credentials; the message says what to set. `access_unavailable`: The keys of Cloudflare Access cannot be fetched. `other_build`: A new version is being deployed. Nothing was done; repeat the request. `not_migrated`: The database lacks a table; the message says what to do. */
        "503.auth_not_configured.access_unavailable.other_build.not_migrated.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "auth_not_configured" | "access_unavailable" | "other_build" | "not_migrated";
                    };
                };
            };
        };
        /** @description `other_build`: A new version is being deployed. Nothing was done; repeat the request. `not_migrated`: The database lacks a table; the message says what to do. `callback_key_unreadable`: The callback could not be checked. Repeat it after `Retry-After`. */
        "503.other_build.not_migrated.callback_key_unreadable.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "other_build" | "not_migrated" | "callback_key_unreadable";
                    };
                };
            };
        };
        /** @description `timeout`: The object of the run did not answer. The request may or may not have been carried out. */
        "504.timeout.billed": {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"] & {
                    error?: {
                        /** @enum {unknown} */
                        code?: "timeout";
                    };
                };
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Answers are not to be stored. */
        "Cache-Control": "no-store";
        /** @description The type of an answer is not to be guessed. */
        "X-Content-Type-Options": "nosniff";
        /** @description What the request has cost, for callers with the role `admin`. */
        "X-Curfew-Bill": string;
        /** @description How to send a credential. */
        "WWW-Authenticate": "Bearer";
        /** @description The methods that the path takes. */
        Allow: string;
        /** @description When to repeat the request. */
        "Retry-After": number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    startRun: {
        parameters: {
            query?: {
                /** @description How long to wait for the end of the run. Milliseconds. */
                wait_ms?: number;
            };
            header?: {
                /** @description The trace of the caller, by W3C Trace Context. The run continues it. */
                traceparent?: string;
            };
            path: {
                /** @description The workflow to run. */
                workflow_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "run_id": "order-1",
                 *       "input": {
                 *         "name": "Ada"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["StartBody"];
            };
        };
        responses: {
            /** @description The run, which the same request had started before. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            /** @description The new run. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_exists.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.invalid_input.limit_exceeded.over_hard_limit.under_minimum.no_public_url.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.not_migrated.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    startBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description The trace of the caller, by W3C Trace Context. The run continues it. */
                traceparent?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "items": [
                 *         {
                 *           "workflow_id": "order",
                 *           "run_id": "order-1",
                 *           "input": {}
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["BatchBody"];
            };
        };
        responses: {
            /** @description What each start was answered with. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchAnswer"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    simulate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "workflow": {
                 *         "id": "pause",
                 *         "nodes": [
                 *           {
                 *             "id": "a",
                 *             "wait": {
                 *               "sleep": "24h"
                 *             }
                 *           }
                 *         ]
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["SimulateBody"];
            };
        };
        responses: {
            /** @description The run at its end, or where the simulation stopped. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Simulation"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.invalid_input.limit_exceeded.over_hard_limit.under_minimum.no_mock.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    listRuns: {
        parameters: {
            query?: {
                /** @description Several with commas, or by repetition. */
                status?: ("running" | "waiting" | "paused" | "compensating" | "completed" | "failed" | "timed_out" | "cancelled")[];
                /** @description The id of the workflow. */
                workflow?: components["schemas"]["Id"];
                /** @description A tag of the workflow. */
                tag?: string;
                /** @description Runs that started then or later. */
                since?: number;
                /** @description Runs that started then or earlier. */
                until?: number;
                /** @description The run that called it. */
                parent?: string;
                /** @description Ids that begin so, in the order of ids. */
                id_prefix?: string;
                /** @description `started`: newest first. `remaining`: runs that have not ended and have a limit, nearest deadline first. */
                sort?: "started" | "remaining";
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. Empty for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of runs. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["RunSummary"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    readRun: {
        parameters: {
            query?: {
                /** @description How long to wait for the end of the run. Milliseconds. */
                wait_ms?: number;
            };
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    listTokens: {
        parameters: {
            query?: {
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tokens. It may be shorter than `limit` where tokens are large. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["Token"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description The number of the last item that was seen. It means the same as `cursor`; only one of both may be given. */
                after?: number;
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events. It may be shorter than `limit` where events are large. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["Event"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    watchRun: {
        parameters: {
            query?: {
                /** @description The `seq` of the last event that was seen. */
                after?: number;
                /** @description Only events of these kinds, with commas between them. */
                kinds?: ("run_started" | "run_completed" | "run_compensating" | "run_failed" | "run_timed_out" | "run_cancelled" | "run_paused" | "run_resumed" | "run_extended" | "run_retried" | "run_restarted" | "token_created" | "token_dispatched" | "token_completed" | "token_failed" | "token_timed_out" | "token_cancelled" | "token_retried" | "fan_out_started" | "fan_in_started" | "fan_in_completed" | "sync_timed_out" | "gate_opened" | "gate_reminded" | "gate_decided" | "gate_timed_out" | "late_result_discarded" | "deadline_warning" | "signal_received" | "subworkflow_started" | "subworkflow_ended" | "subworkflow_paused" | "subworkflow_resumed" | "limit_exceeded" | "dispatch_rung_again" | "attempt_reaped" | "progress")[];
            };
            header?: {
                /** @description The `seq` of the last event that was seen. It counts more than `after`. */
                "Last-Event-ID"?: number;
                /** @description `websocket` asks for a WebSocket. */
                Upgrade?: string;
            };
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A WebSocket follows. */
            101: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Server-sent events: `id` is the `seq`, `data` the JSON of an `Event`. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description The run has ended, and nothing is left after `Last-Event-ID` or `after`. A WebSocket is accepted, and closed with the code 1000. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.too_many_watchers.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of notifications. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["Notification"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                        /** @description What is wrong with the variable `CURFEW_NOTIFY`, whose targets get nothing. */
                        problem?: string;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    listTimeouts: {
        parameters: {
            query?: {
                /** @description The number of the last item that was seen. It means the same as `cursor`; only one of both may be given. */
                after?: number;
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of records, or the whole log as JSON Lines, each line a `TimeoutLine`. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["Timeout"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    readTimeout: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
                /** @description The `seq` of its event. */
                n: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeout"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    readDeliverable: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its output, or what it got done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deliverable"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_not_ended.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    exportRun: {
        parameters: {
            query?: {
                /** @description Leaves out inputs, outputs and all other values of the run. */
                redact?: "values";
            };
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The export. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunExport"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            422: components["responses"]["422.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.not_migrated.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    whatIf: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "changes": [
                 *         {
                 *           "op": "add",
                 *           "path": "/timeout",
                 *           "value": "2h"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["WhatIfBody"];
            };
        };
        responses: {
            /** @description The run as it was, and as it would have been. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhatIf"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.invalid_input.limit_exceeded.over_hard_limit.under_minimum.not_replayable.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.not_migrated.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    readResumeOptions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The ways back. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResumeOptions"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    resumeRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["ByBody"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_finished.run_ending.not_paused.paused_by_parent.decision_needed.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    cancelRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "reason": "the shop is closed"
                 *     }
                 */
                "application/json": components["schemas"]["CancelBody"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_finished.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    pauseRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["ByBody"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_finished.run_ending.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    extendRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "by": "10m"
                 *     }
                 */
                "application/json": components["schemas"]["ExtendBody"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_finished.run_ending.no_timeout.limit_of_parent.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    retryRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "mode": "retry_step"
                 *     }
                 */
                "application/json": components["schemas"]["RetryBody"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_ending.run_not_ended.not_resumable.version_does_not_fit.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.limit_exceeded.no_public_url.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.not_migrated.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    restartRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["RestartBody"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_ending.version_does_not_fit.no_way_back.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.limit_exceeded.no_public_url.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.not_migrated.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    signalRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
                /** @description The name of the signal. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "paid": true
                 *     }
                 */
                "application/json": components["schemas"]["Any"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.unknown_signal.billed"];
            409: components["responses"]["409.run_finished.run_ending.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.limit_exceeded.billed"];
            429: components["responses"]["429.too_many_signals.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    decideGate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the run. Ids of sub-workflows hold a `~`. */
                run_id: string;
                /** @description The id of the gate. */
                gate_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "choice": "approve"
                 *     }
                 */
                "application/json": components["schemas"]["DecisionBody"];
            };
        };
        responses: {
            /** @description The run, after the change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.four_eyes.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_finished.run_ending.gate_closed.no_timeout.limit_of_parent.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    cancelRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filter": {
                 *         "workflow": "order",
                 *         "status": [
                 *           "running"
                 *         ]
                 *       },
                 *       "with": {
                 *         "reason": "the shop is closed"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["BulkCancelBody"];
            };
        };
        responses: {
            /** @description The operation has begun; `GET /v1/operations/{operation_id}` says how far it is. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Its id. */
                        operation_id: string;
                    };
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    pauseRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ids": [
                 *         "order-1",
                 *         "order-2"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["BulkPauseBody"];
            };
        };
        responses: {
            /** @description The operation has begun; `GET /v1/operations/{operation_id}` says how far it is. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Its id. */
                        operation_id: string;
                    };
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    resumeRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ids": [
                 *         "order-1",
                 *         "order-2"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["BulkResumeBody"];
            };
        };
        responses: {
            /** @description The operation has begun; `GET /v1/operations/{operation_id}` says how far it is. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Its id. */
                        operation_id: string;
                    };
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    extendRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filter": {
                 *         "workflow": "order"
                 *       },
                 *       "with": {
                 *         "by": "10m"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["BulkExtendBody"];
            };
        };
        responses: {
            /** @description The operation has begun; `GET /v1/operations/{operation_id}` says how far it is. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Its id. */
                        operation_id: string;
                    };
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    retryRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filter": {
                 *         "status": "failed"
                 *       },
                 *       "with": {
                 *         "mode": "retry_step"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["BulkRetryBody"];
            };
        };
        responses: {
            /** @description The operation has begun; `GET /v1/operations/{operation_id}` says how far it is. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Its id. */
                        operation_id: string;
                    };
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    readOperation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the operation. */
                operation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The operation. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Operation"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    listWorkflows: {
        parameters: {
            query?: {
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. Empty for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of workflows. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["DocumentSummary"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    readWorkflow: {
        parameters: {
            query?: {
                /** @description The version to read; the newest by default. */
                version?: number;
            };
            header?: never;
            path: {
                /** @description The id of the workflow. */
                workflow_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workflow. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Document"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    putWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the workflow. */
                workflow_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description The newest version has the same content already. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredDocument"];
                };
            };
            /** @description A new version was stored. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredDocument"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            409: components["responses"]["409.limit_exceeded.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    listTasks: {
        parameters: {
            query?: {
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. Empty for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tasks. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["DocumentSummary"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    readTask: {
        parameters: {
            query?: {
                /** @description The version to read; the newest by default. */
                version?: number;
            };
            header?: never;
            path: {
                /** @description The id of the task. */
                task_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The task. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Document"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    putTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the task. */
                task_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description The newest version has the same content already. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredDocument"];
                };
            };
            /** @description A new version was stored. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredDocument"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            409: components["responses"]["409.limit_exceeded.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    listActions: {
        parameters: {
            query?: {
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. Empty for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of actions. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["DocumentSummary"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    readAction: {
        parameters: {
            query?: {
                /** @description The version to read; the newest by default. */
                version?: number;
            };
            header?: never;
            path: {
                /** @description The id of the action. */
                action_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The action. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Document"];
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    putAction: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the action. */
                action_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": Record<string, unknown>;
            };
        };
        responses: {
            /** @description The newest version has the same content already. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredDocument"];
                };
            };
            /** @description A new version was stored. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredDocument"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            409: components["responses"]["409.limit_exceeded.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_document.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    analyzeWorkflow: {
        parameters: {
            query?: {
                /** @description The stored version to analyze; the newest by default. */
                version?: number;
            };
            header?: never;
            path: {
                /** @description The id of the workflow. */
                workflow_id: components["schemas"]["Id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["AnalyzeBody"];
            };
        };
        responses: {
            /** @description The analysis, also of a document with errors. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Analysis"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    listGates: {
        parameters: {
            query?: {
                /** @description Gates of this run only. */
                run?: string;
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. Empty for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of open gates. Long texts are cut. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["Gate"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    publishEvent: {
        parameters: {
            query?: never;
            header?: {
                /** @description The trace of the caller, by W3C Trace Context. The run continues it. */
                traceparent?: string;
                /** @description With the same key nothing is started twice. */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The name of the event. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "order": 7
                 *     }
                 */
                "application/json": components["schemas"]["Any"];
            };
        };
        responses: {
            /** @description Nothing new was started. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventAnswer"];
                };
            };
            /** @description At least one run was started. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventAnswer"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            409: components["responses"]["409.key_used.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    deliverCallback: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description From the URL that the action was called with. */
                capability: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "done": true
                 *     }
                 */
                "application/json": components["schemas"]["Any"];
            };
        };
        responses: {
            /** @description The result was taken. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Empty"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            404: components["responses"]["404.not_found.billed"];
            409: components["responses"]["409.run_finished.run_ending.paused.stale_attempt.billed"];
            413: components["responses"]["413.body_too_large.limit_exceeded.billed"];
            422: components["responses"]["422.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.other_build.not_migrated.callback_key_unreadable.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    listBreakers: {
        parameters: {
            query?: {
                /** @description The most items of the page. */
                limit?: number;
                /** @description `next_cursor` of the previous page. Empty for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of breakers. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description The items of this page. */
                        items: components["schemas"]["Breaker"][];
                        /** @description Pass it as `cursor` to get the next page. Null on the last page. */
                        next_cursor: string | null;
                    };
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    resetBreaker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The key of the breaker. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["ByBody"];
            };
        };
        responses: {
            /** @description Its state. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Breaker"];
                };
            };
            400: components["responses"]["400.invalid_json.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            404: components["responses"]["404.not_found.billed"];
            413: components["responses"]["413.body_too_large.billed"];
            415: components["responses"]["415.unsupported_media_type.billed"];
            422: components["responses"]["422.invalid_request.limit_exceeded.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.other_build.billed"];
            504: components["responses"]["504.timeout.billed"];
        };
    };
    readHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It answers. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            500: components["responses"]["500.internal"];
        };
    };
    readMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The text format of Prometheus. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    "X-Curfew-Bill": components["headers"]["X-Curfew-Bill"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            400: components["responses"]["400.invalid_request.billed"];
            401: components["responses"]["401.unauthorized.billed"];
            403: components["responses"]["403.forbidden.not_local.cross_origin.billed"];
            429: components["responses"]["429.rate_limited.billed"];
            500: components["responses"]["500.internal.billed"];
            503: components["responses"]["503.auth_not_configured.access_unavailable.not_migrated.billed"];
        };
    };
    readIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its name, roles and workflows. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.unauthorized"];
            403: components["responses"]["403.forbidden.not_local.cross_origin"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal"];
            503: components["responses"]["503.auth_not_configured.access_unavailable"];
        };
    };
    readContract: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, unknown>;
                };
            };
            400: components["responses"]["400.invalid_request"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal"];
        };
    };
    readSchema: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The kind of documents. */
                name: "workflow" | "task" | "action";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schema. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Content-Type-Options": components["headers"]["X-Content-Type-Options"];
                    [name: string]: unknown;
                };
                content: {
                    "application/schema+json": Record<string, unknown>;
                };
            };
            400: components["responses"]["400.invalid_request"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rate_limited"];
            500: components["responses"]["500.internal"];
        };
    };
}
