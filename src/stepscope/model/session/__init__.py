"""A session in memory."""
