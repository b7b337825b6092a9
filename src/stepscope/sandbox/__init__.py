"""Starts a job in namespaces from which nothing gets out."""
