-- All rows of a table, in any order.
SELECT * FROM {table:Identifier}
