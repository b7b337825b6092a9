"""How much a look at what the job holds may see and take."""

from __future__ import annotations

import time

MOST_OBJECTS = 20_000
MOST_NS = 8_000_000
"""Longest look, in CPU time; the GIL is held meanwhile, but for switches. A look at a usual program takes 0.3 ms. That
a starved machine lets the thread wait says nothing of the look, and must not cut what it finds."""


class Budget:
    """How much may still be looked at."""

    def __init__(self, now_ns: int) -> None:
        """``now_ns``: CPU time of the thread, ``time.thread_time_ns()``."""
        self.left = MOST_OBJECTS
        self.until = now_ns + MOST_NS
        self.seen: set[int] = set()

    def spent(self) -> bool:
        """Whether the look must end."""
        self.left -= 1
        return self.left < 0 or (self.left % 256 == 0 and time.thread_time_ns() > self.until)
