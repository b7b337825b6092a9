"""Detectors of how devices are used."""
