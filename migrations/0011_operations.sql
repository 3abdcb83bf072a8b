-- Bulk operations: one control for many runs, done in the background page by page. A row has what was asked for, how far it is and
-- what came of it.
CREATE TABLE operations (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,               -- the control: cancel, pause, resume, extend, retry
  request TEXT NOT NULL,            -- JSON: the caller, the runs, and the request to each of them
  created_at INTEGER NOT NULL,      -- Unix ms, as all times
  created_by TEXT,                  -- the name of the caller
  cursor TEXT NOT NULL DEFAULT '',  -- behind the last page that is done
  total INTEGER,                    -- NULL: not known before the end
  done INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  errors TEXT NOT NULL DEFAULT '[]', -- JSON: the first failures
  updated_at INTEGER NOT NULL,      -- when the last page was done, or the sweep sent a message for the next one
  ended_at INTEGER
) WITHOUT ROWID;

-- For the sweep: operations that stand still, and those whose retention is over.
CREATE INDEX operations_open ON operations (updated_at) WHERE ended_at IS NULL;
CREATE INDEX operations_ended ON operations (ended_at) WHERE ended_at IS NOT NULL;
