"""Address spaces of processes, for people."""
