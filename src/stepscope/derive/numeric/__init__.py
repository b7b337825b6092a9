"""Arithmetic on numbers and intervals, without any notion of a job."""
