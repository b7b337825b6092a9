"""Answers for coding agents: four tools over what exists, with all text of a job fenced as data."""
