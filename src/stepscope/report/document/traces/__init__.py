"""Sections on traced steps and ops."""
