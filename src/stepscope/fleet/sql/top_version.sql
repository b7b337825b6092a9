-- What the jobs of each version of each package cost together: a job counts under each package that it used.
SELECT
    parts.name AS name,
    parts.text AS version,
    count(*) AS jobs,
    sum(job_failed) AS failed,
    sum(coalesce(wall_ns, 0) / 3.6e12) AS wall_hours,
    sum(jobs.cpu_ns / 3.6e12) AS cpu_hours,
    sum(coalesce(wall_ns, 0) * coalesce(devices, 0) / 3.6e12) AS device_hours,
    sum(
        coalesce(wall_ns, 0) / 3.6e12 * ({host_hour:Float64} + coalesce(devices, 0) * prices.device_hour)
        + coalesce(jobs.cpu_ns, 0) / 3.6e12 * {cpu_hour:Float64}
    ) AS money
FROM parts
INNER JOIN jobs ON parts.session = jobs.session
INNER JOIN prices ON jobs.device = prices.price_of
WHERE parts.kind = 'version'
GROUP BY parts.name, parts.text
ORDER BY {order:Identifier} DESC, name, version
LIMIT {limit:UInt32}
