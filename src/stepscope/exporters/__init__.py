"""Files of other tools, made of sessions: columns to bytes, and what of a session goes into them.

Losses of each format stand in docs/exporting.md. Stacks are written by ``readers.stacks``, whose formats are read too.
"""
