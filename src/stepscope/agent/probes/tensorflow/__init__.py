"""Probes of TensorFlow."""
