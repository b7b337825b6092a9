"""Readers of the agent's files: rings and logs."""
