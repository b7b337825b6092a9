"""Captures of a recording: op traces and windows of native stacks."""
