-- Durations of nodes with an adaptive timeout (`"timeout": "adaptive"`): the last few hundred samples of each node.
CREATE TABLE latencies (
  workflow_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  ms INTEGER NOT NULL,
  PRIMARY KEY (workflow_id, node_id, at, run_id, token_id)
) WITHOUT ROWID;
