"""The input pipeline: its stages, their times, and the Python that runs in it."""
