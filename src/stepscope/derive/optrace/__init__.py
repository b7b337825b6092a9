"""Op traces: which ops ran in the captured steps, for whom, and how long."""
