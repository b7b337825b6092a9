-- The jobs that cost most. What findings would save is counted once: each on top of those before it.
SELECT
    jobs.session AS session,
    started, owner, team, project, program, model, host, device, revision, ending, restarts,
    exit_code, steps, step_ns, milli_samples, overhead_ppm,
    coalesce(wall_ns, 0) / 3.6e12 AS wall_hours,
    cpu_ns / 3.6e12 AS cpu_hours,
    coalesce(wall_ns, 0) * coalesce(devices, 0) / 3.6e12 AS device_hours,
    coalesce(wall_ns, 0) / 3.6e12 * ({host_hour:Float64} + coalesce(devices, 0) * prices.device_hour)
        + coalesce(cpu_ns, 0) / 3.6e12 * {cpu_hour:Float64} AS money,
    coalesce(lost.hours, 0) AS lost_hours
FROM jobs
INNER JOIN prices ON jobs.device = prices.price_of
INNER JOIN (
    SELECT session, sum(CASE WHEN kind = 'finding' THEN coalesce(self_ns, 0) ELSE 0 END) / 3.6e12 AS hours
    FROM parts
    GROUP BY session
) AS lost ON jobs.session = lost.session
ORDER BY {order:Identifier} DESC, session
LIMIT {limit:UInt32}
