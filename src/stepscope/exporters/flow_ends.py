"""Where the links of an op trace begin and end, numbered as flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.exporters.perfetto_packets import Ends

if TYPE_CHECKING:
    from stepscope.derive.optrace.device.event_links import Links
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool

MOST = 16
"""Flows at one end of a span. More would not be legible."""


class FlowEnds:
    """The flows of one op trace."""

    def __init__(self, links: Links, trace: OpTrace | None, first_id: int, shown: Bool | None) -> None:
        """Links that lead back in time are none, nor are those of events that are not ``shown``: bool[event]."""
        source, target = links.source, links.target
        keep = np.ones(len(source), np.bool_)
        if trace is not None:
            known = (source < len(trace.events)) & (target < len(trace.events))
            start = trace.events.start_ns
            keep[known] = start[source[known]] <= start[target[known]]
            if shown is not None:
                for end in (source, target):
                    of_trace = end < len(shown)
                    keep[of_trace] &= shown[end[of_trace]]
        for end in (source, target):
            keep[keep] = _order(end[keep]) < MOST
        rows = np.flatnonzero(keep)
        self._ids = first_id + np.arange(len(rows))
        self._sides = [(end[rows], np.argsort(end[rows], kind="stable")) for end in (source, target)]

    def __len__(self) -> int:
        """Number of flows."""
        return len(self._ids)

    def at(self, events: I64) -> tuple[Ends, ...]:
        """Ends at some events, which rise; rows are positions in ``events``."""
        found = []
        for (end, order), out in zip(self._sides, (True, False), strict=True):
            at = end[order]
            low, high = np.searchsorted(at, (events[0], events[-1] + 1)).tolist()
            rows = np.searchsorted(events, at[low:high])
            there = np.flatnonzero(events[rows] == at[low:high])
            if len(there):
                found.append(Ends(rows=rows[there], ids=self._ids[order[low:high]][there], out=out))
        return tuple(found)


def _order(ends: I64) -> I64:
    """The how-manieth of its event each end is, from 0: int64[end]."""
    by_event = np.argsort(ends, kind="stable")
    ranks = np.empty(len(ends), np.int64)
    ranks[by_event] = np.arange(len(ends)) - np.searchsorted(ends[by_event], ends[by_event], "left")
    return ranks
