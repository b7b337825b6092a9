-- The lines that cost most over all jobs of one project each. A line's share of the steady time makes it wall time.
SELECT
    project,
    parts.file AS file,
    parts.line AS line,
    parts.function AS function,
    count(*) AS jobs,
    count(DISTINCT owner) AS owners,
    sum(coalesce(parts.time_ns, 0) / 3.6e12) AS thread_hours,
    sum(coalesce(parts.self_ns, 0) / 3.6e12) AS self_hours,
    sum(coalesce(parts.ratio, 0) * coalesce(steps, 0) * coalesce(step_ns, 0) / 3.6e12) AS wall_hours,
    sum(parts.cpu_ns / 3.6e12) AS cpu_hours,
    sum(coalesce(parts.ratio, 0) * coalesce(steps, 0) * coalesce(step_ns, 0) / 3.6e12 * coalesce(devices, 0))
        AS device_hours,
    sum(
        coalesce(parts.ratio, 0) * coalesce(steps, 0) * coalesce(step_ns, 0) / 3.6e12
        * ({host_hour:Float64} + coalesce(devices, 0) * prices.device_hour)
        + coalesce(parts.cpu_ns, 0) / 3.6e12 * {cpu_hour:Float64}
    ) AS money
FROM parts
INNER JOIN jobs ON parts.session = jobs.session
INNER JOIN prices ON jobs.device = prices.price_of
WHERE parts.kind = 'line' AND parts.detail = {origin:String}
GROUP BY project, parts.file, parts.line, parts.function
ORDER BY {order:Identifier} DESC, thread_hours DESC, project, file, line, function
LIMIT {limit:UInt32}
