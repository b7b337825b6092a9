"""Which work of the step's graphs is not needed."""
