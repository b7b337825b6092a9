"""Helpers of the detectors of the input."""
