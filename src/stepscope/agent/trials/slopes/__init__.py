"""Delays at a place: which part of its time a step pays (``whatif --try slopes``)."""
