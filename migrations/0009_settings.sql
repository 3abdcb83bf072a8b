-- Settings that the deployment makes for itself.
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- The secrets of runs that wait for callbacks are derived from it.
INSERT INTO settings (name, value) VALUES ('callback_key', lower(hex(randomblob(32))));

-- Unix ms. Until then every capability is forwarded to the object of its run, which checks it: runs that earlier builds started have
-- random secrets, which only their objects know. Limits are at most 30 days. Without a document no run was ever started.
INSERT INTO settings (name, value)
  SELECT 'callback_older_until', CASE WHEN EXISTS (SELECT 1 FROM definitions) THEN (unixepoch() + 30 * 86400) * 1000 ELSE 0 END;
