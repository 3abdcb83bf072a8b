CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tokens (id INTEGER PRIMARY KEY, status TEXT NOT NULL, row TEXT NOT NULL);
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'run';
INSERT INTO run (key, value) SELECT value ->> 0, value -> 1 FROM json_each(?) WHERE true ON CONFLICT (key) DO UPDATE SET value = excluded.value;
INSERT INTO tokens (id, status, row) SELECT value ->> 0, value ->> 1, value -> 2 FROM json_each(?) WHERE true ON CONFLICT (id) DO UPDATE SET status = excluded.status, row = excluded.row;
SELECT key, value FROM run;
SELECT id, status, row FROM tokens WHERE status IN ('pending', 'executing') ORDER BY id;
SELECT status, count(*) FROM tokens GROUP BY status;
SELECT id, status, row FROM tokens WHERE id > ? ORDER BY id LIMIT ?;
