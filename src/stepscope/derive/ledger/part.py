"""A part of a ledger, before it is settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.derive.numeric import intervals

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.model.report.ledger import Phase
    from stepscope.model.session.session import Worker


class LedgerPart(Struct, frozen=True, kw_only=True):
    """A part of the wall time."""

    phase: Phase
    component: str = ""
    """Component of the step; "" in all phases but steps."""
    ns: int
    unobserved_ns: int = 0
    """Part of ``ns`` that lies in gaps of the duty cycle."""
    count: int = 0
    """Number of what happened in it: steps, imports, evaluations; 0 if it has no number."""
    spans: Intervals = field(default_factory=intervals.empty)
    """When it was observed."""


class Ledger(Struct, frozen=True, kw_only=True):
    """The parts of one ledger in the order of a job's life, *not seen* last."""

    worker: Worker
    threads: tuple[int, ...]
    """Threads whose time it divides: the one that makes the steps, and the main one while that does nothing."""
    wall_ns: int
    parts: tuple[LedgerPart, ...]
    overlap_ns: int = 0
    """Time that two parts claim."""
    exit_ns: int = 0
    """Part of the wall time in which the interpreter was finishing."""
    maker: int | None = None
    """Index of the maker whose ledger it is; None: that of the job."""
    pace: float = 1.0
    """Time of the mean step that was only counted, in mean steps that were timed."""
