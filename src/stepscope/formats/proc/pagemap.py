"""Counts resident pages by blocks of a huge page's size, from /proc/PID/pagemap.

Source: Documentation/admin-guide/mm/pagemap.rst: 64 bits a page, bit 63 "page present". No other bits are used, so no
rights are needed beyond those to inspect the process.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ENTRY_BYTES = 8


class Blocks(NamedTuple):
    """Aligned blocks within a mapping."""

    full: int
    """Blocks with all pages present."""
    part: int
    """Blocks with some pages present."""
    pages: int
    """Pages present in both."""


def count(entries: bytes, pages_per_block: int) -> Blocks:
    """Count the blocks of ``entries``, which begin with a block's first page; a partial block at the end is ignored."""
    words = np.frombuffer(entries, np.uint64, len(entries) // ENTRY_BYTES)
    whole = len(words) // pages_per_block
    present = (words[: whole * pages_per_block] >> np.uint64(63)).reshape(whole, pages_per_block).sum(axis=1)
    full = int((present == pages_per_block).sum())
    return Blocks(full, int((present > 0).sum()) - full, int(present.sum()))
