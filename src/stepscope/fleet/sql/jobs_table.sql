-- One row a session, of those that the filters keep. An empty filter keeps all.
CREATE TEMPORARY TABLE jobs AS
SELECT
    *,
    CASE
        WHEN exit_code <> 0 THEN 1
        WHEN exit_code IS NULL AND ending IN ('memory', 'unknown') AND manner <> 'import' THEN 1
        ELSE 0
    END AS job_failed
FROM (
    SELECT
        session,
        '' AS whole,
        max(CASE WHEN name = 'user' THEN text ELSE '' END) AS owner,
        max(CASE WHEN name = 'team' THEN text ELSE '' END) AS team,
        max(CASE WHEN name = 'project' THEN text ELSE '' END) AS project,
        max(CASE WHEN name = 'program' THEN text ELSE '' END) AS program,
        max(CASE WHEN name = 'commit' THEN text ELSE '' END) AS revision,
        max(CASE WHEN name = 'mode' THEN text ELSE '' END) AS manner,
        max(CASE WHEN name = 'model' THEN text ELSE '' END) AS model,
        max(CASE WHEN name = 'host' THEN text ELSE '' END) AS host,
        max(CASE WHEN name = 'device' THEN text ELSE '' END) AS device,
        max(CASE WHEN name = 'end' THEN text ELSE '' END) AS ending,
        max(CASE WHEN name = 'restarts' THEN text ELSE '' END) AS restarts,
        max(CASE WHEN name = 'started' THEN text ELSE '' END) AS started,
        max(CASE WHEN name = 'started_unix_s' THEN number END) AS started_unix_s,
        max(CASE WHEN name = 'wall_ns' THEN number END) AS wall_ns,
        max(CASE WHEN name = 'cpu_ns' THEN number END) AS cpu_ns,
        max(CASE WHEN name = 'devices' THEN number END) AS devices,
        max(CASE WHEN name = 'steps' THEN number END) AS steps,
        max(CASE WHEN name = 'step_ns' THEN number END) AS step_ns,
        max(CASE WHEN name = 'milli_samples' THEN number END) AS milli_samples,
        max(CASE WHEN name = 'exit_code' THEN number END) AS exit_code,
        max(CASE WHEN name = 'overhead_ppm' THEN number END) AS overhead_ppm,
        max(CASE WHEN name = 'saved_ns' THEN number END) AS saved_ns
    FROM parts
    WHERE kind IN ('about', 'amount')
    GROUP BY session
) AS every
WHERE
    ({owner:String} = '' OR owner = {owner:String})
    AND ({team:String} = '' OR team = {team:String})
    AND ({project:String} = '' OR project = {project:String})
    AND ({program:String} = '' OR program = {program:String})
    AND ({model:String} = '' OR model = {model:String})
    AND ({host:String} = '' OR host = {host:String})
    AND (
        {finding:String} = ''
        OR session IN (SELECT session FROM parts WHERE kind = 'finding' AND name = {finding:String})
    )
