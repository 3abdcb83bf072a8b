-- The name of the caller that stored a version. NULL: it was stored by an older build, or in development.
ALTER TABLE definitions ADD COLUMN created_by TEXT;
