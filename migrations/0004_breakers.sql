-- How the breakers stand that ever counted a failure. Each one's object is the truth.
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
