"""Python code of the step's thread, by stack samples and by its source."""
