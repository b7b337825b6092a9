"""Rules about ops that loops repeat."""
