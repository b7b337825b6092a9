"""What the host's threads did in an op trace."""
