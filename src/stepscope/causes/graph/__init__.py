"""Unnecessary work in the step's graphs."""
