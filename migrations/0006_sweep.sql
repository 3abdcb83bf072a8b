-- For the sweep: overdue runs, and runs without recent updates. Each index contains only runs that have not ended, so that a pass
-- reads the rows it probes and not the whole table.
ALTER TABLE runs ADD COLUMN due_at INTEGER;                      -- when the run must have ended or opened a gate
ALTER TABLE runs ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0; -- when its object made the summary

UPDATE runs SET due_at = timeout_at WHERE ended_at IS NULL AND status <> 'paused';

CREATE INDEX runs_due ON runs (due_at) WHERE ended_at IS NULL AND due_at IS NOT NULL;
CREATE INDEX runs_unheard ON runs (updated_at) WHERE ended_at IS NULL;
