"""Requests and answers of the REST interface."""
