"""Why steps wait for their input."""
