"""Detectors of the use of devices."""
