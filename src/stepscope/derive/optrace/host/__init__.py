"""Work of the host's threads in an op trace."""
