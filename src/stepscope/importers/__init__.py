"""Other tools' files in: one module per foreign format, listed in ``registry``, known by content and not by name."""
