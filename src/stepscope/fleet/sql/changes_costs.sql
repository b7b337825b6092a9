-- What each line, function, op or finding cost each session.
CREATE TEMPORARY TABLE costs AS
SELECT
    session,
    CASE WHEN kind = 'line' THEN '' ELSE name END AS name,
    text AS words,
    CASE WHEN kind = 'finding' THEN '' ELSE file END AS file,
    CASE WHEN kind = 'finding' OR {lines:UInt32} = 0 THEN 0 ELSE line END AS line,
    CASE WHEN kind = 'line' THEN function ELSE '' END AS function,
    sum(time_ns) AS time_ns,
    sum(cpu_ns) AS cpu_ns,
    sum(ratio) AS ratio
FROM parts
WHERE kind = {kind:String} AND (kind <> 'line' OR detail = {origin:String})
GROUP BY 1, 2, 3, 4, 5, 6
