"""Detectors of the causes of input waits."""
