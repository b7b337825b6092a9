-- What is followed over time: all that enough sessions of one job have.
CREATE TEMPORARY TABLE series AS
SELECT row_number() OVER (ORDER BY project, program, model, device, name, words, file, line, function) - 1 AS series, *
FROM (
    SELECT project, program, model, device, name, words, file, line, function
    FROM costs
    INNER JOIN runs ON costs.session = runs.session
    GROUP BY project, program, model, device, name, words, file, line, function
    HAVING count(*) >= {least:UInt32}
) AS followed
