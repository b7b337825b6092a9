"""Detectors of work in the step's graphs that is not needed."""
