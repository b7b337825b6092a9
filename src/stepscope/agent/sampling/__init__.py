"""The agent's thread, what it samples, and what keeps it within its budget."""
