-- Adds what the runs of a batch have counted since their last message to the totals. Must run before the runs are saved: what a
-- run has added before is in its row. Of no effect for messages that are repeated or older than the row.
-- ?1: summaries as JSON, ?2: the number of the current five minutes, ?3: 1 if runs without a row count, too, ?4: how many nodes
-- have rows of their own.
WITH
told AS (
    SELECT value ->> '$.summary.id' AS id, value ->> '$.summary.workflow_id' AS workflow,
        value ->> '$.summary.started_at' AS started_at, value ->> '$.revision' AS revision, value ->> '$.at' AS at,
        value -> '$.metrics' AS metrics
    FROM json_each(?1) WHERE value -> '$.metrics' IS NOT NULL
),
newer AS (
    SELECT told.id, told.workflow, told.metrics,
        -- A run that started later has the id of another one.
        CASE WHEN runs.started_at = told.started_at THEN ifnull(runs.metrics, '[]') ELSE '[]' END AS before
    FROM told LEFT JOIN runs ON runs.id = told.id
    WHERE CASE WHEN runs.id IS NULL THEN ?3 = 1
        ELSE (told.started_at, told.revision, told.at) > (runs.started_at, runs.revision, runs.updated_at) END
),
counted AS (
    SELECT newer.id AS run, workflow, sample.value ->> 0 AS node, sample.value ->> 1 AS name, sample.value ->> 2 AS total
        FROM newer, json_each(newer.metrics) AS sample
    UNION ALL
    SELECT newer.id, workflow, sample.value ->> 0, sample.value ->> 1, -(sample.value ->> 2)
        FROM newer, json_each(newer.before) AS sample
),
-- Totals of a run only grow. One that does not is of an object that lost its memory, and counts when it has caught up.
grown AS (
    SELECT workflow, node, name, sum(total) AS more FROM counted GROUP BY run, workflow, node, name HAVING sum(total) > 0
),
named AS (
    SELECT CASE node WHEN '' THEN '' ELSE workflow END AS workflow, node, name, sum(more) AS more FROM grown GROUP BY 1, 2, 3
),
-- Nodes without a row get one as long as there is space.
new_nodes AS (
    SELECT workflow, node, row_number() OVER (ORDER BY workflow, node) AS place
    FROM (SELECT DISTINCT workflow, node FROM named WHERE node <> '') AS seen
    WHERE NOT EXISTS (SELECT 1 FROM metrics WHERE metrics.workflow = seen.workflow AND metrics.node = seen.node)
),
placed AS (
    SELECT iif(is_other, 'other', workflow) AS workflow, iif(is_other, 'other', node) AS node, name, more FROM (
        SELECT named.*, ifnull(new_nodes.place, 0) > ?4 - (SELECT count(*) FROM metrics WHERE workflow <> '' AND node <> 'other')
            AND new_nodes.place IS NOT NULL AS is_other
        FROM named LEFT JOIN new_nodes ON new_nodes.workflow = named.workflow AND new_nodes.node = named.node
    )
),
added AS (
    SELECT workflow, node, name, more FROM placed
    UNION ALL
    SELECT '', '', 'recent/' || CAST(?2 AS INTEGER) || '/' || substr(name, 6), more FROM placed WHERE node = '' AND name LIKE 'ends/%'
)
INSERT INTO metrics (workflow, node, samples)
    SELECT workflow, node, json_group_object(name, more)
    FROM (SELECT workflow, node, name, sum(more) AS more FROM added GROUP BY 1, 2, 3) WHERE true GROUP BY 1, 2
ON CONFLICT (workflow, node) DO UPDATE SET samples = (
    SELECT json_group_object(key, total) FROM (
        SELECT key, sum(value) AS total FROM (
            SELECT key, value FROM json_each(metrics.samples) UNION ALL SELECT key, value FROM json_each(excluded.samples)
        )
        -- Ends of more than an hour ago.
        WHERE NOT (key LIKE 'recent/%' AND CAST(substr(key, 8) AS INTEGER) < ?2 - 12)
        GROUP BY key
    )
)
