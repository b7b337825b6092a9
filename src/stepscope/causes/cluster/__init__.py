"""What the members of one job do to each other."""
