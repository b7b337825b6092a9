-- What each of them cost in each session; -1: not known.
SELECT
    series.series AS series,
    runs.run AS run,
    coalesce(costs.time_ns, -1) AS time_ns,
    coalesce(costs.cpu_ns, -1) AS cpu_ns,
    coalesce(costs.ratio, -1.0) AS ratio
FROM costs
INNER JOIN runs ON costs.session = runs.session
INNER JOIN series
    ON runs.project = series.project AND runs.program = series.program AND runs.model = series.model
    AND runs.device = series.device AND costs.name = series.name AND costs.words = series.words
    AND costs.file = series.file AND costs.line = series.line AND costs.function = series.function
