// Views for rows that tests insert into the index by SQL: whole ones, because every answer is compared with the OpenAPI document.

/** The view of a run. Each argument is an SQL expression. */
export const runView = (run: { id: string; workflow_id: string; status: string; started_at: string; tags?: string; parent?: string }): string =>
  `json_object('id', ${run.id}, 'workflow_id', ${run.workflow_id}, 'version', 1, 'status', ${run.status}, 'error', NULL, 'started_at', ${run.started_at},
    'ended_at', NULL, 'timeout_at', NULL, 'duration_ms', NULL, 'attempt', 1, 'tags', json(${run.tags ?? "'[]'"}), 'parent', ${run.parent ?? "NULL"})`
    .replace(/\s+/g, " ");

/** The view of an open gate of a run. Both arguments are SQL expressions. */
export const gateView = (runId: string, id = "'g1'"): string =>
  `json_object('id', ${id}, 'run_id', ${runId}, 'node_id', 'a', 'token_id', 't1', 'kind', 'node', 'prompt', NULL, 'choices', json('["approve"]'),
    'input_schema', NULL, 'opened_at', 1, 'timeout_at', NULL, 'reminded_at', NULL, 'status', 'open', 'decision', NULL)`
    .replace(/\s+/g, " ");
