"""Detectors of what makes steps wait for their input."""
