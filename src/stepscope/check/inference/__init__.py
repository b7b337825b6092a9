"""Resolution of names and inference of values."""
