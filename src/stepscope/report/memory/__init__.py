"""Address spaces of processes, as text for people."""
