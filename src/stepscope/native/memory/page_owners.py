"""Who brought the pages that a process holds: sampled page faults, joined to looks at its page map.

A page belongs to the stack that touched it last before the look: a fault means that it was not there, whatever had
happened to it before. Which pages are held is exact, who brought them is sampled: each sample stands for as many pages
as its weight says, and what the samples stand for is fitted to the bytes that the looks show, within the noise of
sampling. What no fault accounts for came otherwise: moved by mremap, or made huge by the kernel.

Source: docs/decisions/0077-memory-by-stack.md.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.native.memory.page_looks import PageLook
    from stepscope.tables.records import F64, I64

HUGE_BYTES = 2 << 20
"""Size of a huge page where the kernel does not say it."""
NOISE = 3.0
"""Standard deviations of sampling within which the samples are fitted to what the looks show."""


class Faults(Struct, frozen=True, kw_only=True):
    """Sampled page faults, in time order. int64[fault]; ``pages`` float64[fault]: pages that each stands for."""

    at_ns: I64
    address: I64
    pages: F64


class FaultedBytes(Struct, frozen=True, kw_only=True):
    """Bytes by the fault that brought them."""

    faults: I64
    """Positions of the faults. int64[row]."""
    bytes: F64
    """Bytes that each accounts for. float64[row]."""
    before: float = 0.0
    """Bytes that were there before the first fault."""
    other: float = 0.0
    """Bytes that came without a fault."""

    @property
    def total(self) -> float:
        """All bytes."""
        return float(self.bytes.sum()) + self.before + self.other


def grown(faults: Faults, base: PageLook, last: PageLook, huge: int = HUGE_BYTES) -> FaultedBytes:
    """The pages that are held at the last look and were not at the first one."""
    rows, stands = _standing(faults, last, huge)
    new = base.runs_of(faults.address[rows]) < 0
    held = float(last.bytes - last.shared_bytes(base))
    fitted, other = _fitted(stands[new], held)
    return FaultedBytes(faults=rows[new], bytes=fitted, other=other)


def held(faults: Faults, base: PageLook, at: PageLook, huge: int = HUGE_BYTES) -> FaultedBytes:
    """All pages that are held at a look. Those held at the first one and not touched since were there before."""
    rows, stands = _standing(faults, at, huge)
    new = base.runs_of(faults.address[rows]) < 0
    known = at.shared_bytes(base)
    fitted, other = _fitted(stands[new], float(at.bytes - known))
    again = stands[~new]
    again = again * min(1.0, known / again.sum()) if len(again) else again
    return FaultedBytes(
        faults=np.concatenate((rows[new], rows[~new])),
        bytes=np.concatenate((fitted, again)),
        before=max(0.0, known - float(again.sum())),
        other=other,
    )


def _standing(faults: Faults, look: PageLook, huge: int) -> tuple[I64, F64]:
    """The faults that brought pages held at a look, each page's last one, and the bytes that each stands for."""
    before = np.flatnonzero(faults.at_ns <= look.at_ns)
    page = faults.address[before] // mmap.PAGESIZE
    _, newest = np.unique(page[::-1], return_index=True)
    rows = np.sort(before[len(before) - 1 - newest])
    runs = look.runs_of(faults.address[rows])
    rows, runs = rows[runs >= 0], runs[runs >= 0]
    size = np.where(look.huge[runs], huge, mmap.PAGESIZE) if len(rows) else np.empty(0, np.int64)
    return rows, faults.pages[rows] * size


def _fitted(stands: F64, held: float) -> tuple[F64, float]:
    """(bytes of each fault, bytes without a fault), which sum to ``held``."""
    total = float(stands.sum())
    if not total:
        return stands, held
    noise = NOISE * float(np.sqrt(np.square(stands).sum()))
    if total >= held - noise:
        return stands * (held / total), 0.0
    return stands, held - total
