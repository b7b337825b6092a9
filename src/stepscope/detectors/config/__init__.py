"""Detectors of settings that cost time."""
