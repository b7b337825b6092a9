"""Work of the devices in an op trace: by category, and when they were busy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.numeric import intervals
from stepscope.tables.optrace import DEVICE_KINDS, Category, LineKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.tables.optrace import OpTrace, Plane
    from stepscope.tables.records import I64

WORK = (Category.KERNEL, Category.OP, Category.COLLECTIVE, Category.COPY)
"""Categories of a device's work; waits and markers are not work."""
TO_DEVICE, FROM_DEVICE = "MemcpyHToD", "MemcpyDToH"
"""Op types of copies (``readers.op_names``)."""
STAGING = {TO_DEVICE: "H2D Dispatch", FROM_DEVICE: "D2H Copy From Staging Buffer"}
"""What PJRT's threads call the copy between the program's own memory and the pinned buffer that the device copies from
or to: of pageable arrays it takes most of the time. Source: xla/pjrt/se_raw_buffer.cc."""
_SIZE = re.compile(r"\bsize:(\d+)")
_WORK_LINES = (LineKind.STREAM, LineKind.XLA_OPS, LineKind.ASYNC_OPS)


def captured(trace: OpTrace) -> tuple[Plane, ...]:
    """Accelerators with recorded events."""
    return tuple(plane for plane in trace.planes if plane.kind in DEVICE_KINDS and plane.captured)


def rows(trace: OpTrace, plane: int, *categories: Category) -> I64:
    """Rows of a device's work of some categories (``WORK`` if none is given), rising. Those of a TPU core nest."""
    parts = [
        line.first + np.flatnonzero(np.isin(trace.metas.category[trace.events.meta[line.slice]], categories or WORK))
        for line in trace.lines_of(*_WORK_LINES)
        if line.plane == plane and not line.derived
    ]
    return np.concatenate(parts).astype(np.int64) if parts else np.empty(0, np.int64)


def copies(trace: OpTrace, plane: int, way: str) -> I64:
    """Rows of a device's copies of one op type (``TO_DEVICE``, ``FROM_DEVICE``)."""
    found = rows(trace, plane, Category.COPY)
    wanted = np.array([text == way for text in trace.strings], np.bool_)
    result: I64 = found[wanted[trace.metas.op_type[trace.events.meta[found]]]]
    return result


def staged(trace: OpTrace, way: str) -> I64:
    """Rows of the host's part of copies of one op type."""
    wanted = np.zeros(len(trace.metas), np.bool_)
    wanted[trace.metas_named(STAGING[way])] = True
    return np.flatnonzero(wanted[trace.events.meta]) if wanted.any() else np.empty(0, np.int64)


def copied_bytes(trace: OpTrace, chosen: I64) -> I64:
    """Bytes of some copies; 0 if the trace does not say."""
    sizes: I64 = trace.ints(StatName.TRANSFER_BYTES, 0)[chosen]
    if sizes.any():
        return sizes
    codes, texts = trace.texts(StatName.MEMCPY_DETAILS)
    told = [_SIZE.search(text) for text in texts]
    return np.array([*(int(match[1]) if match else 0 for match in told), 0], np.int64)[codes[chosen]]


def when(trace: OpTrace, chosen: I64) -> Intervals:
    """Times of some events."""
    return intervals.merge(trace.events.start_ns[chosen], trace.events.end_ns[chosen])


def busy(trace: OpTrace, plane: int, *categories: Category) -> Intervals:
    """Times at which a device did work of some categories (any if none is given)."""
    return when(trace, rows(trace, plane, *categories))


def main(trace: OpTrace) -> int:
    """Index of the captured device with the most kernel time; -1 if there is none."""
    found = [(intervals.total(busy(trace, plane.index)), -plane.index) for plane in captured(trace)]
    return -max(found)[1] if found else -1
