"""Where the time of a component goes, and what the run without it would take: for losses that no detector explains."""
