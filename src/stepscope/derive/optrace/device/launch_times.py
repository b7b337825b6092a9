"""From the host's launch of device work to the work itself: duration of launches, and waiting time of the work.

A launch call on the host and the kernel or copy that it starts carry the same correlation id. Work that begins as soon
as its launch returns found the device idle; work that begins long after lay in the stream's queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool


class Launches(Struct, frozen=True, kw_only=True):
    """Device work with its launches. Shapes: [work], sorted by start of the work; rows of the trace's events."""

    device: int
    """Index of its plane."""
    work: I64
    call: I64
    """The host's call; -1 if it was not recorded."""
    start_ns: I64
    end_ns: I64
    called_ns: I64
    """Time at which the call was entered; -1 if unknown, like the next."""
    returned_ns: I64

    @property
    def known(self) -> I64:
        """Positions of work with a known call."""
        return np.flatnonzero(self.call >= 0)

    @property
    def queued_ns(self) -> I64:
        """Time from the call's return to the start of the work; 0 if the work began before. For ``known``."""
        waited: I64 = np.maximum(0, self.start_ns[self.known] - self.returned_ns[self.known])
        return waited


def build(trace: OpTrace, domain: Domain, device: int) -> Launches:
    """The work of one device. Cost: reads one stat, and sorts its values."""
    work = device_work.rows(trace, device)
    events = trace.events
    work = work[np.argsort(events.start_ns[work], kind="stable")]
    call = callers(trace, work, domain.host)
    there = call >= 0
    return Launches(
        device=device,
        work=work,
        call=call,
        start_ns=events.start_ns[work],
        end_ns=events.end_ns[work],
        called_ns=np.where(there, events.start_ns[call], -1),
        returned_ns=np.where(there, events.end_ns[call], -1),
    )


def callers(trace: OpTrace, work: I64, host: Bool) -> I64:
    """The host's call of each piece of work, -1 if not recorded. ``host``: events of the host."""
    rows, ids = trace.ints_of(StatName.CORRELATION_ID)
    if not len(rows):
        return np.full(len(work), -1, np.int64)
    of_host = np.flatnonzero((ids >= 0) & host[rows])
    calls, numbers = rows[of_host], ids[of_host]
    # of nested calls the inner one: the shortest, of equal ones the first
    order = np.lexsort((trace.events.dur_ns[calls], numbers))
    calls, numbers = calls[order], numbers[order]
    first = np.append(True, numbers[1:] != numbers[:-1])[: len(calls)]
    calls, numbers = np.append(calls[first], -1), np.append(numbers[first], -1)
    place = np.searchsorted(rows, work)
    wanted = np.where(rows.take(place, mode="clip") == work, ids.take(place, mode="clip"), -1)
    at = np.searchsorted(numbers[:-1], wanted)
    call: I64 = calls[at]
    call[numbers[at] != wanted] = -1
    return call


def queued_gaps(launches: Launches) -> Intervals:
    """Times at which the device was idle although its next work had been launched: the gap between two kernels."""
    known = launches.known
    if not len(known):
        return intervals.empty()
    lo, hi = intervals.merge(launches.start_ns, launches.end_ns)
    following = np.searchsorted(launches.start_ns[known], hi[:-1], side="left")
    there = following < len(known)
    handed = launches.returned_ns[known][following[there]]
    return intervals.merge(np.maximum(hi[:-1][there], handed), lo[1:][there])
