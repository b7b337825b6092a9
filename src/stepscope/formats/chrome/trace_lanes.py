"""Lanes for spans that overlap without nesting."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDING_US = 1.0
"""Time by which a child may end after its parent, because files may round to whole microseconds."""


def split(spans: Sequence[tuple[float, float]]) -> tuple[list[int], int]:
    """The lane of each span (start, duration), and the number of spans that did not fit into the first.

    Within a lane spans either nest or do not overlap, up to ``ROUNDING_US``.
    """
    lanes = [0] * len(spans)
    open_ends: list[list[float]] = [[]]
    for i in sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1])):
        start, dur = spans[i]
        for ends in open_ends:
            while ends and ends[-1] <= start:
                ends.pop()
        fitting = (n for n, ends in enumerate(open_ends) if not ends or start + dur <= ends[-1] + ROUNDING_US)
        lane = next(fitting, len(open_ends))
        if lane == len(open_ends):
            open_ends.append([])
        lanes[i] = lane
        ends = open_ends[lane]
        ends.append(min(start + dur, ends[-1]) if ends else start + dur)
    return lanes, sum(1 for lane in lanes if lane)
