"""Occasional bursts of looks at the network, 50 times a second for a second: is the wire ever idle?

In samples of once a second, a job that downloads for 0.3 s and computes for 0.7 s looks like one that downloads all the
time. A burst distinguishes them at a tenth of the cost of constant frequent looks: about 0.15 ms per look, 9 ms per
burst.
"""

from __future__ import annotations

from stepscope.collector.samplers.base import Rows
from stepscope.collector.samplers.host import cpu_clock
from stepscope.tables.records import BurstTable

STEP_NS = 20_000_000
LOOKS = 60
_FIRST_NS = 4_000_000_000
"""Time after the first sample: imports and the first trace are usually over."""
_SOON_NS, _LATER_NS = 8_000_000_000, 40_000_000_000
"""Time between two bursts, in the first minute and afterwards."""
_EARLY = 6
MIN_BYTES = 100_000
"""Traffic per second below which no closer look is needed."""


class BurstSampler:
    """Rows of bursts."""

    def __init__(self, origin_ns: int) -> None:
        """Times in rows count from ``origin_ns``."""
        self.rows = Rows(BurstTable)
        self._origin_ns = origin_ns
        self._left = 0
        self._bursts = 0
        self._due_ns = 0
        self._last: tuple[int, int] | None = None

    @property
    def running(self) -> bool:
        """Whether a burst is in progress."""
        return self._left > 0

    def consider(self, now_ns: int, received: int) -> None:
        """Begin a burst, at a regular sample, if one is due and the network moves."""
        moved = received - self._last[1] if self._last else 0
        self._last = (now_ns, received)
        self._due_ns = self._due_ns or now_ns + _FIRST_NS
        if now_ns >= self._due_ns and moved >= MIN_BYTES and not self.running:
            self._left = LOOKS
            self._bursts += 1
            self._due_ns = now_ns + (_SOON_NS if self._bursts < _EARLY else _LATER_NS)

    def look(self, now_ns: int, totals: tuple[int, int], pids: frozenset[int]) -> None:
        """One look of a burst."""
        self._left -= 1
        used = sum(max(0, cpu_clock(pid)) for pid in pids)
        self.rows.add(now_ns - self._origin_ns, *totals, used)
