"""A track of the timeline before it is divided into lanes, the names of its spans, and the links between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.model.api.timeline import SpanName
from stepscope.store.span_cache import PLACE_BITS

if TYPE_CHECKING:
    from stepscope.derive.optrace.device.event_links import Links
    from stepscope.tables.optrace import I32, OpTrace
    from stepscope.tables.records import I64

Say = Callable[[float, str], object]
"""Progress callback: share done (0 to 1), and what is being read."""


class SpanTrack(Struct, frozen=True, kw_only=True):
    """One track before it is divided into lanes. Shapes: [span], sorted by start, longer spans first."""

    key: str
    group: str
    title: str
    kind: str
    start: I64
    dur: I64
    name: I32
    worker: str = ""
    trace: str = ""
    linked: LinkedEvents | None = None
    """Links that need to know the lanes of this track's events."""
    first_event: int = 0
    """Row of the track's first event in its op trace."""
    optrace: OpTrace | None = None
    """That op trace, for what else it says of the events; of links between tasks None."""
    native: int = 0
    """The kernel's number of the thread; 0: not a thread of a measured process, or not known."""
    bound_ns: int | None = 0
    """By how much its times may be off on the timeline; None: not known."""


class LinkedEvents:
    """Links of one op trace, and where their events are drawn, for the tracks already divided into lanes."""

    def __init__(self, links: Links) -> None:
        """Starts with no event placed."""
        self.links = links
        self._events = np.unique(np.concatenate([links.source, links.target]))
        self._lane = np.full(len(self._events), -1, np.int64)
        self._row = np.full(len(self._events), -1, np.int64)

    def place(self, lane: int, events: I64) -> None:
        """Records the lane of ``events``, given by their row in the lane."""
        at = np.searchsorted(self._events, events)
        here = np.flatnonzero(np.append(self._events, -1)[at] == events)
        self._lane[at[here]], self._row[at[here]] = lane, here

    def placed(self) -> tuple[I64, I64, I64]:
        """Links whose two events are drawn: source and target as places (lane << 32 | row), and kind."""
        place = (self._lane << PLACE_BITS) | self._row
        ends = [np.searchsorted(self._events, end) for end in (self.links.source, self.links.target)]
        drawn = np.flatnonzero((self._lane[ends[0]] >= 0) & (self._lane[ends[1]] >= 0))
        return place[ends[0]][drawn], place[ends[1]][drawn], self.links.kind[drawn]


class DistinctNames(Struct):
    """Distinct names of spans."""

    items: list[SpanName] = field(default_factory=list)
    _known: dict[SpanName, int] = field(default_factory=dict)

    def add(self, name: SpanName) -> int:
        """Number of ``name``, which is added if new."""
        number = self._known.setdefault(name, len(self.items))
        if number == len(self.items):
            self.items.append(name)
        return number
