"""Threads that hand work to a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.tables.blocks import take
from stepscope.tables.optrace import DEVICE_KINDS
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.tables.optrace import I32, OpTrace
    from stepscope.tables.records import Bool


def find(trace: OpTrace, parent: I32, host: Bool) -> Bool:
    """Ops on threads that launch kernels on a device: their work is on the device, not here.

    A thread that launches kernels runs only the host side of device ops: ops placed on the host run on the other pool.
    So if an op launched no kernel (a reshape), its time still counts as launching.
    """
    result = np.zeros(len(trace.events), np.bool_)
    if not any(plane.kind in DEVICE_KINDS and plane.captured for plane in trace.planes):
        return result
    calls = np.zeros(len(trace.events), np.bool_)
    calls[trace.stats.of_events(StatName.CORRELATION_ID).rows] = True
    calls &= host
    inside = np.zeros(len(trace.events), np.bool_)
    above = parent[calls]
    while len(above := above[above >= 0]):
        above = above[~inside[above]]
        inside[above] = True
        above = parent[above]
    threads = np.bincount(trace.events.line[calls], minlength=len(trace.lines)) >= _MANY_CALLS
    handing = take(threads, trace.events.line)
    handing &= host
    return inside | handing


_MANY_CALLS = 16
"""A pool thread with fewer calls, such as a few copies, also runs the host's own ops."""
