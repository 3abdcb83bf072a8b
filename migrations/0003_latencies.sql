-- How long nodes took whose limit is learnt from it (`"timeout": "adaptive"`). Only the last few hundred of a node are kept.
CREATE TABLE latencies (
  workflow_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  ms INTEGER NOT NULL,
  PRIMARY KEY (workflow_id, node_id, at, run_id, token_id)
) WITHOUT ROWID;
