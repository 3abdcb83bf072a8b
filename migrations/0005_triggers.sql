-- Which workflows an event starts: what the newest version of each says. Written in one transaction with that version.
CREATE TABLE triggers (
  event TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  PRIMARY KEY (event, workflow_id)
) WITHOUT ROWID;
