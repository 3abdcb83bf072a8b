-- One index for each filter of the list of runs, and one for a workflow with a status. Every index ends in (started_at, id), both in
-- the same direction, so that a page is read from its cursor on. A run that starts and ends in one message is written to the table and
-- three indexes; the partial indexes contain only runs with a parent, or runs that have not ended.
DROP INDEX runs_by_start;
DROP INDEX runs_by_workflow;
DROP INDEX runs_by_status;

-- Computed from the summary: needs no storage, and existing rows have it immediately.
ALTER TABLE runs ADD COLUMN parent_id TEXT GENERATED ALWAYS AS (summary ->> '$.parent.run_id') VIRTUAL;

CREATE INDEX runs_by_started ON runs (started_at, id);
CREATE INDEX runs_by_status ON runs (status, started_at, id);
-- Also for the list of a workflow in any status, which is merged from all statuses.
CREATE INDEX runs_by_workflow ON runs (workflow_id, status, started_at, id);
CREATE INDEX runs_by_parent ON runs (parent_id, started_at, id) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_by_deadline ON runs (timeout_at, id) WHERE ended_at IS NULL AND timeout_at IS NOT NULL;

-- One row for each tag of a run.
CREATE TABLE run_tags (
  tag TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  PRIMARY KEY (tag, started_at, run_id)
) WITHOUT ROWID;

INSERT INTO run_tags (tag, started_at, run_id)
  SELECT DISTINCT tag.value, runs.started_at, runs.id FROM runs CROSS JOIN json_each(runs.tags) AS tag;
