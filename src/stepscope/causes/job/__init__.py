"""What kind of job this is."""
