"""Probes of JAX."""
