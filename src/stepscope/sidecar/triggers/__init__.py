"""Triggers: what notices in a running job that something is worth doing before its turn."""
