"""Ops replayed alone after the job: the program that does it, and its process."""
