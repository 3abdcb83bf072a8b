-- Totals of the deployment for GET /metrics. One row for all runs, one for the sweep and one for each measured node: a batch of
-- messages adds to few rows, and a scrape reads few.
CREATE TABLE metrics (
  workflow TEXT NOT NULL,         -- '' for the rows that are of no workflow
  node TEXT NOT NULL,             -- '' for all runs, 'sweep' for the sweep
  samples TEXT NOT NULL,          -- JSON: totals by the name of the sample
  PRIMARY KEY (workflow, node)
) WITHOUT ROWID;

-- What a run has added to the totals: [[node, sample, total], ...]. A repeated message adds nothing, a later one the difference.
ALTER TABLE runs ADD COLUMN metrics TEXT;

-- Since when a run is paused or waits for a person as a whole. Other runs are not in the index.
ALTER TABLE runs ADD COLUMN parked_since INTEGER;
CREATE INDEX runs_parked ON runs (parked_since) WHERE parked_since IS NOT NULL;

-- A scrape reads the breakers that are not closed first.
CREATE INDEX breakers_not_closed ON breakers (key) WHERE state <> 'closed';
