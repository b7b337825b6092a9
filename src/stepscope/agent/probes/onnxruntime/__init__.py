"""Probes of ONNX Runtime."""
