"""The agent's thread, the samples that it takes, and the limits that keep it within its budget."""
