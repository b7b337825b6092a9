"""Rules about work done row by row that one call can do for all rows."""
