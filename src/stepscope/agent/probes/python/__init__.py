"""Probes of Python itself, and of the Python code that frameworks call."""
