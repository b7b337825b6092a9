"""What the REST interface answers and is asked."""
