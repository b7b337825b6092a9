"""Applying the fixes that rules plan: from a ``FixPlan`` to edits of a file's text. Only this package uses libcst.

``fixer`` turns plans into edits, ``actions`` lists the available actions, ``files`` reads and writes, ``notebooks``
maps edits of a notebook's text to its cells.
"""
