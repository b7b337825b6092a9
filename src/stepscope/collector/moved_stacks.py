"""Callers of generated code that has moved the stack pointer into a buffer of its own: the stack is not in the sample.

oneDNN's kernels of matrix products keep the pointer that they had in their buffer. Another sample of the same thread
that was called through the same place of the stack has the callers: the nearest in time gives them. They are those of
its moment, not of this very one, so such a stack counts as attached and approximate, never as whole.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from typing import TYPE_CHECKING

from stepscope.formats import unwind

if TYPE_CHECKING:
    from stepscope.formats.perf_data import Sample
    from stepscope.formats.unwind import Walk

_SLACK_BYTES = 64 << 10
"""How much deeper than any stack seen the pointer may have been."""


class MovedStacks:
    """The stacks of one window's threads, by the places that they lead through."""

    def __init__(self) -> None:
        """None."""
        self._places: dict[int, dict[int, list[tuple[int, Walk, int]]]] = defaultdict(lambda: defaultdict(list))
        self._lows: dict[int, int] = {}
        self._highs: dict[int, int] = {}

    def add(self, sample: Sample, walk: Walk) -> None:
        """A stack that has come to its end. Samples in the order of time."""
        first = 1 if walk.attached else 0  # the kernel's own pointer may be anywhere
        pointers = walk.pointers[first:]
        if not pointers:
            return
        thread = sample.tid
        for at, pointer in enumerate(pointers, first):
            self._places[thread][pointer].append((sample.at_ns, walk, at))
        self._lows[thread] = min(pointers[0], self._lows.get(thread, pointers[0]))
        self._highs[thread] = max(pointers[-1], self._highs.get(thread, 0))

    def callers(self, sample: Sample) -> tuple[int, ...]:
        """Addresses of the callers of a sample in generated code, innermost first; none where nothing fits."""
        places = self._places.get(sample.tid)
        if places is None:
            return ()
        low, high = self._lows[sample.tid] - _SLACK_BYTES, self._highs[sample.tid]
        for pointer in unwind.kept_pointers(sample.stack, low, high):
            through = places.get(pointer + unwind.PUSHED_BYTES + unwind.WORD)
            if through:
                at = bisect.bisect_left(through, sample.at_ns, key=lambda one: one[0])
                near = through[max(at - 1, 0) : at + 1]
                _, walk, frame = min(near, key=lambda one: abs(one[0] - sample.at_ns))
                return walk.addresses[frame:]
        return ()
