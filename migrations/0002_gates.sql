-- Open and decided gates.
CREATE TABLE gates (
  run_id TEXT NOT NULL,
  id TEXT NOT NULL,
  status TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  view TEXT NOT NULL,
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;

CREATE INDEX gates_open ON gates (opened_at, run_id, id) WHERE status = 'open';
