"""Frames that no sample names, and the events of profiles of memory: written by captures, read by analyses."""

from __future__ import annotations

from stepscope.tables.stacks import Frame, FrameKind

GROWTH, HIGHEST = "memory-growth", "memory-peak"
"""Event names: memory that came in a window and stayed; all memory at the window's highest moment."""

BEFORE = Frame("[there before the capture]", kind=FrameKind.OTHER)

OTHER = Frame("[came without a page fault]", kind=FrameKind.OTHER)

SOME = 1.05
"""Ratio from which on two amounts of memory differ in a text."""

NOT_SAMPLED = Frame("[Python, not sampled]", kind=FrameKind.PYTHON, resolved=False)
"""Stands for inner Python frames that were not sampled."""
