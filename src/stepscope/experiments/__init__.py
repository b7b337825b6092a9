"""Experiments on a job: what may be changed, in which order it is tried, and what the numbers say."""
