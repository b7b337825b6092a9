"""What calls of one kind have cost, without what the first one does once for all of them.

The first call of a function loads code, makes kernels and fills caches: the first read of tf.data's model takes 3 ms of
CPU time, every later one 0.05 ms. A budget that takes the first for the price of the next affords no second.
"""

from __future__ import annotations


class SpentTime:
    """CPU time of calls. What it says of the first is what the second took, at most; before there was one, nothing."""

    __slots__ = ("_first_ns", "calls", "ns")

    def __init__(self) -> None:
        self.ns = 0
        """Of all calls."""
        self.calls = 0
        """Number of them."""
        self._first_ns = -1
        """Of the first call, until the second one; -1: there was none, 0: it counts."""

    def add(self, ns: int) -> None:
        """Count a call that took so long."""
        self.calls += 1
        if self._first_ns < 0:
            self._first_ns = ns
            return
        self.ns += min(self._first_ns, ns) + ns
        self._first_ns = 0
