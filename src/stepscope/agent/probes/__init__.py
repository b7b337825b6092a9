"""agent/probes."""
