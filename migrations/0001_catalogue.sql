-- The catalogue (definitions) and the index of runs. The run objects own the runs; they write the index through a queue.
-- WITHOUT ROWID: D1 bills one written row per row instead of two.

CREATE TABLE definitions (
    kind TEXT NOT NULL,             -- 'actions', 'tasks' or 'workflows'
    id TEXT NOT NULL,
    version INTEGER NOT NULL,       -- 1, 2, ...; a stored version never changes
    content TEXT NOT NULL,          -- the document, as JSON
    created_at INTEGER NOT NULL,    -- Unix ms, like every time below
    PRIMARY KEY (kind, id, version)
) WITHOUT ROWID;

CREATE TABLE runs (
    id TEXT PRIMARY KEY NOT NULL,
    workflow_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    status TEXT NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]', -- a JSON array of strings
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    timeout_at INTEGER,
    revision INTEGER NOT NULL,      -- queue messages may be reordered: the higher revision wins
    summary TEXT NOT NULL           -- the run's entry in lists, as JSON
) WITHOUT ROWID;

CREATE INDEX runs_by_start ON runs (started_at DESC, id);
CREATE INDEX runs_by_workflow ON runs (workflow_id, started_at);
CREATE INDEX runs_by_status ON runs (status, started_at);
