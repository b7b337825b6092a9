-- What the remedies of each finding would save over all jobs, with the interval that all being at one end would give.
SELECT
    parts.name AS name,
    parts.text AS words,
    count(DISTINCT parts.session) AS jobs,
    count(DISTINCT owner) AS owners,
    sum(time_ns / 3.6e12) AS wall_hours,
    sum(CASE WHEN ratio > 0 THEN time_ns / 3.6e12 * low / ratio END) AS wall_low,
    sum(CASE WHEN ratio > 0 THEN time_ns / 3.6e12 * high / ratio END) AS wall_high,
    sum(coalesce(self_ns, 0) / 3.6e12) AS lost_hours,
    sum(time_ns / 3.6e12 * coalesce(devices, 0)) AS device_hours,
    sum(time_ns / 3.6e12 * ({host_hour:Float64} + coalesce(devices, 0) * prices.device_hour)) AS money
FROM parts
INNER JOIN jobs ON parts.session = jobs.session
INNER JOIN prices ON jobs.device = prices.price_of
WHERE parts.kind = 'finding'
GROUP BY parts.name, parts.text
ORDER BY {order:Identifier} DESC, name, words
LIMIT {limit:UInt32}
