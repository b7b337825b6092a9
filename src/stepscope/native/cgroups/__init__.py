"""Control groups of processes: their limits, and what the kernel counts in them."""
