"""Sections on the machine and its system."""
