"""Checking many files: what to run where, and what is kept between runs."""
