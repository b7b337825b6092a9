"""Experiments: what can be changed in a job without touching its code, to measure what that does to its steps."""
