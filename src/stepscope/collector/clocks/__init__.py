"""Compares this host's clock with those of other hosts, by exchanges between their collectors."""
