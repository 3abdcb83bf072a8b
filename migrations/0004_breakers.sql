-- The last known state of every breaker that ever counted a failure. The breaker's object owns the state.
CREATE TABLE breakers (
  key TEXT PRIMARY KEY NOT NULL,
  state TEXT NOT NULL,            -- 'closed', 'open', 'half_open' or 'escalated'
  failures INTEGER NOT NULL,
  opened_at INTEGER,
  trial_at INTEGER,
  escalated_at INTEGER,
  updated_at INTEGER NOT NULL,
  revision INTEGER NOT NULL       -- queue messages may be reordered: the higher revision wins
) WITHOUT ROWID;
