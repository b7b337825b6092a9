"""What names and expressions stand for."""
