"""Python code of the step's thread, from stack samples and from its source."""
