"""Counts resident pages by blocks of a huge page's size, from /proc/PID/pagemap.

Source: Documentation/admin-guide/mm/pagemap.rst: 64 bits a page, bit 63 "page present", bit 62 "swapped", bit 61 "file
page or shared". No others are used, so no rights are needed beyond those to inspect the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stepscope.tables.records import Bool

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


_FILE, _HELD = 1 << 61, 3 << 62


def anonymous(entries: bytes) -> Bool:
    """Whether each page is held, in memory or swapped out, and is not of a file nor shared. bool[page]."""
    words = np.frombuffer(entries, np.uint64, len(entries) // ENTRY_BYTES)
    held = words & np.uint64(_HELD) != 0
    return np.asarray(held & (words & np.uint64(_FILE) == 0), np.bool_)
