"""Jobs that are always measured: where it is set, and how much is kept."""
