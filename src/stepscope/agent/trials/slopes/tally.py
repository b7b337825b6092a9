"""Counts of a place, and the delay that its calls are to take, in memory that a process shares with those it forks.

Each thread adds to separate numbers, so that no lock is needed; workers of a loader count like threads.
"""

from __future__ import annotations

import mmap
import threading

THREADS = 500
"""Threads that have numbers of their own, those of forked processes and those that have ended included."""
WORDS = 8
"""Numbers of a thread, and of the head."""
DELAY, HELD_UNTIL, HOW = 0, 1, 2
"""Numbers of the head: ns that a call is to take longer; until when calls are held (monotonic clock); how they wait."""
CALLS, WALL, CPU, DELAYS, ADDED, ACTIVE, TID = range(7)
"""Numbers of a thread: calls that ended, their time and CPU time without delays, calls while delays were on, ns that
were added to them, calls that run now, and its id."""
SLEEP, BUSY, BUSY_HELD = 0, 1, 2
"""How a call is delayed: asleep; computing without the interpreter lock; computing with it, as Python does."""


class Own(threading.local):
    """What a thread knows of itself."""

    at = -1
    """Where its numbers begin; -1: it has none yet."""
    inside = 0
    """Its id while it runs the place: calls within count as a part of the outermost one. Ids of a fork are others."""
    owed = 0
    """Nanoseconds that it was not yet delayed by; below 0: by which it was delayed too long."""


class Tally:
    """The numbers. ``claim`` on the thread that counts; the rest on the agent's thread."""

    def __init__(self) -> None:
        self.words = memoryview(mmap.mmap(-1, 8 * WORDS * (THREADS + 1))).cast("q")
        self.own = Own()

    def claim(self, tid: int) -> int:
        """Where the numbers of the calling thread, ``tid``, begin; -1: too many threads have called the place."""
        for place in range(THREADS):
            at = WORDS * (1 + (tid + place) % THREADS)
            if self.words[at + TID] in (0, tid):
                self.words[at + TID] = tid
                return at
        return -1

    def total(self, number: int) -> int:
        """A number, over all threads."""
        return sum(self.words[WORDS + number :: WORDS])

    def ids(self) -> list[int]:
        """Ids of the threads that have numbers."""
        return [tid for tid in self.words[WORDS + TID :: WORDS] if tid]

    def threads(self) -> int:
        """Threads that have called the place."""
        return sum(map(bool, self.words[WORDS + CALLS :: WORDS]))

    def set(self, number: int, value: int) -> None:
        """Set a number of the head."""
        self.words[number] = value
