"""Reports of the members of one job together."""
