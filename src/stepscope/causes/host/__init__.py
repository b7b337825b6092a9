"""Unnecessary work of the host in the steps."""
