"""Arguments of an op trace's events: what the profiler wrote at each, for debug annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.exporters.perfetto_packets import Arg
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.optrace_stats import StatColumn
    from stepscope.tables.records import I64

_LINKING = frozenset(
    {
        StatName.STEP_ROOT,
        StatName.PRODUCER_ID,
        StatName.PRODUCER_TYPE,
        StatName.CONSUMER_ID,
        StatName.CONSUMER_TYPE,
        StatName.FLOW_OUT,
        StatName.FLOW_IN,
    }
)
"""Stats that only link events: they are flows."""


class EventArgs:
    """Reads the stats of one op trace, each once."""

    def __init__(self, trace: OpTrace) -> None:
        """Reads all stats: they are sparse columns, and stay until the next trace."""
        self.trace = trace
        stats = trace.stats
        names = [name for name in dict.fromkeys((*stats.event_names(), *stats.meta_names())) if name not in _LINKING]
        self._own = {name: stats.of_events(name) for name in names}
        self._of_metas = {name: stats.of_metas(name) for name in names}

    def of(self, events: I64) -> tuple[Arg, ...]:
        """The arguments of some events, which rise; rows are positions in ``events``."""
        if not len(events):
            return ()
        return tuple(arg for name in self._own for arg in self._one(name, events))

    def _one(self, name: str, events: I64) -> Iterator[Arg]:
        own = self._own[name].between(int(events[0]), int(events[-1]) + 1)
        rows = np.searchsorted(events, own.rows)
        there = events[rows] == own.rows
        if there.any():
            yield _arg(own, rows[there], np.flatnonzero(there))
        of_metas = self._of_metas[name]
        if not len(of_metas):
            return
        place = np.full(len(self.trace.metas), -1, np.int64)
        place[of_metas.rows] = np.arange(len(of_metas))
        found = place[self.trace.events.meta[events]]
        found[rows[there]] = -1
        others = np.flatnonzero(found >= 0)
        if len(others):
            yield _arg(of_metas, others, found[others])


def _arg(column: StatColumn, rows: I64, positions: I64) -> Arg:
    return Arg(name=column.name, rows=rows, values=column.values[positions], texts=column.texts)
