"""Doing what rules plan: from a ``FixPlan`` to edits of a file's text. The only place that knows libcst.

``fixer`` turns plans into edits, ``actions`` lists what can be done, ``files`` reads and writes, ``notebooks`` maps
edits of a notebook's text to its cells.
"""
