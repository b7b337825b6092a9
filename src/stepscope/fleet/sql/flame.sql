-- All stacks of one event, added up over the jobs.
SELECT {root:Identifier} AS root, parts.text AS stack, sum(parts.time_ns) AS weight, sum(parts.number) AS samples
FROM parts
INNER JOIN jobs ON parts.session = jobs.session
WHERE parts.kind = 'stack' AND parts.name = {event:String} AND parts.time_ns > 0
GROUP BY {root:Identifier}, parts.text
ORDER BY root, stack
