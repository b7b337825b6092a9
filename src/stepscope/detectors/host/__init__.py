"""Detectors of the work of Python and the framework on the host."""
