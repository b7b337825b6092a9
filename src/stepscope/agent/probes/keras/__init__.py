"""Probes of Keras."""
