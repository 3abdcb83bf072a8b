-- What the sweep looks for: runs whose end is overdue, and runs that nothing was heard of for long. Each index holds only runs
-- that have not ended, so that a pass reads what it rings and not the whole table.
ALTER TABLE runs ADD COLUMN due_at INTEGER;                      -- by when it must have ended, or asked a person
ALTER TABLE runs ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0; -- when its object said so

UPDATE runs SET due_at = timeout_at WHERE ended_at IS NULL AND status <> 'paused';

CREATE INDEX runs_due ON runs (due_at) WHERE ended_at IS NULL AND due_at IS NOT NULL;
CREATE INDEX runs_unheard ON runs (updated_at) WHERE ended_at IS NULL;
