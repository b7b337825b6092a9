"""Importers of other tools' files: one module per format, listed in ``registry``, recognised by content, not by
name.
"""
