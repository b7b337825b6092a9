"""Unwinds through generated code that switched to a private stack buffer: the real stack is not in the sample.

oneDNN's kernels of matrix products keep the old stack pointer in their buffer. Another sample of the same thread that
was called through the same place of the stack has the callers: the nearest in time is used. If there is none, the
samples before and after give the callers further out than that place, as far as they agree. All these are from another
moment, so such a stack counts as attached and approximate, never as whole.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.native.formats import unwind

if TYPE_CHECKING:
    from stepscope.native.formats.perf_data import Sample
    from stepscope.native.formats.unwind import Walk

_SLACK_BYTES = 64 << 10
"""Distance by which the pointer may have been deeper than any stack seen."""


class SwitchedStacks:
    """The stacks of one window's threads, by the places that they lead through."""

    def __init__(self) -> None:
        """Begin empty."""
        self._places: dict[int, dict[int, list[tuple[int, Walk, int]]]] = defaultdict(lambda: defaultdict(list))
        self._walks: dict[int, list[tuple[int, Walk]]] = defaultdict(list)
        self._lows: dict[int, int] = {}
        self._highs: dict[int, int] = {}

    def add(self, sample: Sample, walk: Walk) -> None:
        """Add a stack that was walked to its end. Samples must be in time order."""
        first = 1 if walk.attached else 0  # the kernel's own pointer may be anywhere
        pointers = walk.pointers[first:]
        if not pointers:
            return
        thread = sample.tid
        self._walks[thread].append((sample.at_ns, walk))
        for at, pointer in enumerate(pointers, first):
            self._places[thread][pointer].append((sample.at_ns, walk, at))
        self._lows[thread] = min(pointers[0], self._lows.get(thread, pointers[0]))
        self._highs[thread] = max(pointers[-1], self._highs.get(thread, 0))

    def callers(self, sample: Sample) -> tuple[int, ...]:
        """Addresses of the callers of a sample in generated code, innermost first; none if nothing fits."""
        places = self._places.get(sample.tid)
        if places is None:
            return ()
        low, high = self._lows[sample.tid] - _SLACK_BYTES, self._highs[sample.tid]
        kept = unwind.kept_pointers(sample.stack, low, high)
        for pointer in kept:
            through = places.get(pointer + unwind.PUSHED_BYTES + unwind.WORD)
            if through:
                at = bisect.bisect_left(through, sample.at_ns, key=lambda one: one[0])
                near = through[max(at - 1, 0) : at + 1]
                _, walk, frame = min(near, key=lambda one: abs(one[0] - sample.at_ns))
                return walk.addresses[frame:]
        return self._shared(sample, kept[0]) if kept else ()

    def _shared(self, sample: Sample, pointer: int) -> tuple[int, ...]:
        """The frames further out than a place of the stack that the samples before and after share."""
        walks = self._walks[sample.tid]
        after = bisect.bisect_left(walks, sample.at_ns, key=lambda one: one[0])
        if not 0 < after < len(walks):
            return ()
        beside = [_further_out(walk, pointer) for _, walk in walks[after - 1 : after + 1]]
        alike = zip(*(reversed(frames) for frames in beside), strict=False)
        same = itertools.takewhile(lambda frames: len(set(frames)) == 1, alike)
        return tuple(frames[0][0] for frames in same)[::-1]


def _further_out(walk: Walk, pointer: int) -> list[tuple[int, int]]:
    """(address, stack pointer) of the frames beyond a place, leaf first."""
    first = 1 if walk.attached else 0
    frames = zip(walk.addresses[first:], walk.pointers[first:], strict=True)
    return [frame for frame in frames if frame[1] > pointer]
