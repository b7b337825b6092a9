"""Checking many files: what runs where, and what is cached between runs."""
