-- Everything that a scrape shows, in one statement. Every part is bounded: a row for each measured node, so many breakers, and
-- so many parked runs.
-- ?1: how many breakers of each kind, ?2: how many parked runs are counted
SELECT 'samples' AS kind, workflow, node, samples AS text, 0 AS number FROM metrics
UNION ALL SELECT 'breaker', '', key, state, 0
    FROM (SELECT key, state FROM breakers INDEXED BY breakers_not_closed WHERE state <> 'closed' ORDER BY key LIMIT ?1)
UNION ALL SELECT 'breaker', '', key, state, 0
    FROM (SELECT key, state FROM breakers WHERE state = 'closed' ORDER BY key LIMIT ?1)
UNION ALL SELECT 'parked', '', '', '', count(*)
    FROM (SELECT 1 FROM runs INDEXED BY runs_parked WHERE parked_since IS NOT NULL LIMIT ?2)
UNION ALL SELECT 'parked_since', '', '', '', at
    FROM (SELECT parked_since AS at FROM runs INDEXED BY runs_parked WHERE parked_since IS NOT NULL ORDER BY parked_since LIMIT 1)
