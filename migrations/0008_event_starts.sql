-- Runs that were started by emitted events, by the first event of the chain: limits how many runs one event may lead to. Runs that
-- the first event starts itself have no row. The sweep removes old rows.
CREATE TABLE event_starts (
  root TEXT NOT NULL,             -- 'event|key' of the first event
  run_id TEXT NOT NULL,
  at INTEGER NOT NULL,            -- Unix ms
  PRIMARY KEY (root, run_id)
) WITHOUT ROWID;

CREATE INDEX event_starts_by_age ON event_starts (at);
