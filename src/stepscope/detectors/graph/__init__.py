"""Detectors of unnecessary work in the step's graphs."""
