-- What the jobs of each group cost together.
SELECT
    {group:Identifier} AS name,
    count(*) AS jobs,
    sum(job_failed) AS failed,
    sum(coalesce(wall_ns, 0) / 3.6e12) AS wall_hours,
    sum(cpu_ns / 3.6e12) AS cpu_hours,
    sum(coalesce(wall_ns, 0) * coalesce(devices, 0) / 3.6e12) AS device_hours,
    sum(
        coalesce(wall_ns, 0) / 3.6e12 * ({host_hour:Float64} + coalesce(devices, 0) * prices.device_hour)
        + coalesce(cpu_ns, 0) / 3.6e12 * {cpu_hour:Float64}
    ) AS money,
    sum(lost.hours) AS lost_hours
FROM jobs
INNER JOIN prices ON jobs.device = prices.price_of
INNER JOIN (
    SELECT session, sum(CASE WHEN kind = 'finding' THEN coalesce(self_ns, 0) ELSE 0 END) / 3.6e12 AS hours
    FROM parts
    GROUP BY session
) AS lost ON jobs.session = lost.session
GROUP BY {group:Identifier}
ORDER BY {order:Identifier} DESC, name
LIMIT {limit:UInt32}
