"""The calls that the thread of the steps makes: their starts, ends, durations, names and arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.tables.records import I64, Bool, RecordTable
    from stepscope.wire.kinds import Kind


class Calls(Struct, frozen=True):
    """Calls of some kinds on one thread, sorted by their starts. Shapes: [call]; times ns since session start."""

    records: RecordTable

    def __len__(self) -> int:
        """Number of calls."""
        return len(self.records)

    @property
    def starts(self) -> I64:
        """Start of each call."""
        return self.records.start_ns

    @property
    def ends(self) -> I64:
        """End of each call."""
        return self.records.start_ns + self.records.dur_ns

    @property
    def durations(self) -> I64:
        """Duration of each call."""
        return self.records.dur_ns

    @property
    def names(self) -> I64:
        """Id of each call's name."""
        return self.records.name

    @property
    def args(self) -> I64:
        """Argument of each call; its meaning depends on the kind."""
        return self.records.arg

    @property
    def spans(self) -> Intervals:
        """Time in the calls, as disjoint sorted intervals."""
        return intervals.merge(self.starts, self.ends)

    def where(self, mask: Bool) -> Calls:
        """The calls at which ``mask`` is true."""
        return Calls(self.records.take(mask))

    def of_kinds(self, *kinds: Kind) -> Calls:
        """The calls of some of the kinds."""
        return self.where(np.isin(self.records.kind, kinds))

    def named(self, names: Iterable[int]) -> Calls:
        """The calls with one of these names."""
        return self.where(np.isin(self.names, np.array(list(names), np.int64)))

    def flagged(self, flag: int) -> Bool:
        """Whether each call has a flag."""
        found: Bool = (self.records.flags & flag) != 0
        return found

    def begun_in(self, windows: Intervals) -> Calls:
        """The calls that start between the first window's start and the last one's end."""
        if not len(windows[0]):
            return self.where(np.zeros(len(self), np.bool_))
        return self.where((self.starts >= windows[0][0]) & (self.starts < windows[1][-1]))


def of(steps: Steps, *kinds: Kind) -> Calls:
    """The calls of some kinds on the thread that makes the steps."""
    records = steps.worker.records
    return Calls(records.take((records.thread == steps.thread) & np.isin(records.kind, kinds)))
