"""The report in a few lines: what a terminal shows without -v, and the short JSON."""
