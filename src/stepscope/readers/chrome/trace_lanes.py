"""Spans of one thread that overlap without nesting: where they may be cut, and lanes for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.records import F64, I64, Bool

ROUNDING_US = 1.0
"""Time by which a child may end after its parent, because files may round to whole microseconds."""


def cut(start: F64, dur: F64, frames: Bool) -> F64:
    """The duration of each span once ``frames`` that overlap another span without nesting are cut.

    A Python call that begins an annotation, as ``__enter__`` does, lasts into it, and the one that ends it begins
    within: each is cut at the annotation's edge. Shapes: [span].
    """
    order = _parents_first(start, dur)
    starts, ends = start[order].tolist(), (start + dur)[order].tolist()
    durs, calls = dur[order].tolist(), frames[order].tolist()
    around: list[tuple[float, int]] = []
    for i, (begin, end, call) in enumerate(zip(starts, ends, calls, strict=True)):
        while around and around[-1][0] <= begin:
            around.pop()
        while around and around[-1][0] < end and calls[around[-1][1]] and not call:
            _, begun = around.pop()
            durs[begun] = begin - starts[begun]
        last = end
        if around and around[-1][0] < end and call:
            last = around[-1][0]
            durs[i] = last - begin
        around.append((last, i))
    found = np.empty(len(durs), np.float64)
    found[order] = durs
    return found


def split(start: F64, dur: F64) -> tuple[I64, int]:
    """The lane of each span, and the number of spans that did not fit into the first. Shapes: [span].

    Within a lane spans either nest or do not overlap, up to ``ROUNDING_US``.
    """
    lanes = np.zeros(len(start), np.int64)
    order = _parents_first(start, dur)
    starts, ends = start[order].tolist(), (start + dur)[order].tolist()
    if not _nest(starts, ends):
        lanes[order] = _lanes(starts, ends)
    return lanes, int((lanes > 0).sum())


def _parents_first(start: F64, dur: F64) -> I64:
    return np.lexsort((-dur, start))


def _nest(starts: Sequence[float], ends: Sequence[float]) -> bool:
    """Whether all spans fit into one lane."""
    around = [float("inf")]
    for start, end in zip(starts, ends, strict=True):
        while around[-1] <= start:
            around.pop()
        last = around[-1]
        if end <= last:
            around.append(end)
        elif end <= last + ROUNDING_US:
            around.append(last)
        else:
            return False
    return True


def _lanes(starts: Sequence[float], ends: Sequence[float]) -> list[int]:
    lanes = []
    open_ends: list[list[float]] = [[]]
    for start, end in zip(starts, ends, strict=True):
        for around in open_ends:
            while around and around[-1] <= start:
                around.pop()
        fitting = (n for n, around in enumerate(open_ends) if not around or end <= around[-1] + ROUNDING_US)
        lane = next(fitting, len(open_ends))
        if lane == len(open_ends):
            open_ends.append([])
        lanes.append(lane)
        around = open_ends[lane]
        around.append(min(end, around[-1]) if around else end)
    return lanes
