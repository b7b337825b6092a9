-- What the wall time of each session went into; all kinds add up to its ledger.
SELECT
    jobs.session AS session,
    started, started_unix_s, owner, project, program, model, host, restarts, job_failed, saved_ns,
    coalesce(devices, 0) AS devices,
    sum(CASE
        WHEN parts.name IN ('start', 'imports', 'building', 'first-steps', 'tracing') THEN time_ns
        WHEN parts.text IN ('tracing', 'building') THEN time_ns
        ELSE 0
    END) AS start_ns,
    sum(CASE WHEN parts.text = 'input-wait' THEN time_ns ELSE 0 END) AS input_ns,
    sum(CASE WHEN parts.name = 'saving' OR parts.text = 'saving' THEN time_ns ELSE 0 END) AS saving_ns,
    sum(CASE WHEN parts.name = 'evaluation' OR parts.text = 'evaluation' THEN time_ns ELSE 0 END) AS evaluation_ns,
    sum(CASE
        WHEN parts.name IN ('steps', 'other-steps')
            AND parts.text NOT IN ('tracing', 'building', 'input-wait', 'saving', 'evaluation') THEN time_ns
        ELSE 0
    END) AS steps_ns,
    sum(CASE WHEN parts.name IN ('between-steps', 'end', 'not-seen') THEN time_ns ELSE 0 END) AS other_ns
FROM parts
INNER JOIN jobs ON parts.session = jobs.session
WHERE parts.kind = 'ledger'
GROUP BY
    jobs.session, started, started_unix_s, owner, project, program, model, host, restarts, job_failed, saved_ns, devices
