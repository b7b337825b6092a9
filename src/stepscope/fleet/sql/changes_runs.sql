-- The sessions in the order of time. Whole: what the times of lines are shares of.
CREATE TEMPORARY TABLE runs AS
SELECT
    row_number() OVER (ORDER BY started_unix_s, jobs.session) - 1 AS run,
    jobs.*,
    whole.sampled_cpu_ns,
    whole.sampled_ns,
    whole.has_costs
FROM jobs
INNER JOIN (
    SELECT
        session,
        max(CASE WHEN kind = 'amount' AND name = 'sampled_cpu_ns' THEN number END) AS sampled_cpu_ns,
        sum(CASE WHEN kind = 'line' THEN self_ns END) AS sampled_ns,
        max(CASE WHEN kind = {kind:String} THEN 1 ELSE 0 END) AS has_costs
    FROM parts
    GROUP BY session
) AS whole ON jobs.session = whole.session
