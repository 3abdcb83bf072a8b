-- Which workflows an event starts, according to their newest versions. Written in one transaction with the version.
CREATE TABLE triggers (
  event TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  PRIMARY KEY (event, workflow_id)
) WITHOUT ROWID;
