"""Helpers of several families of detectors."""
