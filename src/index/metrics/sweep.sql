-- Adds the totals of one pass of the sweep. Samples whose names begin with `last/` are replaced.
-- ?1: samples as a JSON object
INSERT INTO metrics (workflow, node, samples) VALUES ('', 'sweep', ?1)
ON CONFLICT (workflow, node) DO UPDATE SET samples = (
    SELECT json_group_object(key, total) FROM (
        SELECT key, iif(key LIKE 'last/%', max(value), sum(value)) AS total FROM (
            SELECT key, value FROM json_each(metrics.samples) UNION ALL SELECT key, value FROM json_each(excluded.samples)
        ) GROUP BY key
    )
)
