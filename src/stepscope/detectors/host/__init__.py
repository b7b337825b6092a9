"""Detectors of what Python and the framework do on the host."""
