"""Texts and pages of experiments."""
