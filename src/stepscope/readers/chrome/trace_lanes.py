"""Spans of one thread that overlap without nesting: where they may be cut, and lanes for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDING_US = 1.0
"""Time by which a child may end after its parent, because files may round to whole microseconds."""


def cut(spans: Sequence[tuple[float, float]], frames: Sequence[bool]) -> list[float]:
    """The duration of each span (start, duration) once ``frames`` that overlap another span without nesting are cut.

    A Python call that begins an annotation, as ``__enter__`` does, lasts into it, and the one that ends it begins
    within: each is cut at the annotation's edge.
    """
    durs = [dur for _, dur in spans]
    around: list[tuple[float, int]] = []
    for i in sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1])):
        start, end = spans[i][0], spans[i][0] + spans[i][1]
        while around and around[-1][0] <= start:
            around.pop()
        while around and around[-1][0] < end and frames[around[-1][1]] and not frames[i]:
            _, begun = around.pop()
            durs[begun] = start - spans[begun][0]
        if around and around[-1][0] < end and frames[i]:
            end = around[-1][0]
            durs[i] = end - start
        around.append((end, i))
    return durs


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
