"""Helpers of the general detectors."""
