"""Findings of the checker, for people and for other tools."""
