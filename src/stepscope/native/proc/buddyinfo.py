"""Reads /proc/buddyinfo: free blocks of physical memory by zone and size.

Source: Documentation/filesystems/proc.rst, "buddyinfo"; mm/vmstat.c, frag_show_print.
"""

from __future__ import annotations

import re

from stepscope.tables.address_space import FreeZone

_LINE = re.compile(r"Node +(\d+), +zone +(\S+)((?: +\d+)+) *")


def read(text: str) -> tuple[FreeZone, ...]:
    """The zones, in the kernel's order; lines of another form are left out."""
    found = filter(None, map(_LINE.fullmatch, text.splitlines()))
    return tuple(FreeZone(node=int(m[1]), zone=m[2], blocks=tuple(map(int, m[3].split()))) for m in found)
