"""The lines of the agent's log."""
