"""Rules about work row by row that one call does for all rows."""
