"""Probes of PyTorch."""
