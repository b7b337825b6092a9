"""Lets no garbage collection begin while the frames of other threads are walked: Python 3.11 would damage memory.

Python 3.11 makes the object of a frame when somebody first asks for it, by ``f_back`` or ``sys._current_frames``, and a
collection may begin in the middle of that. What a collection calls (our own record of it, a finalizer, the deletion of
a tensor) may let go of the interpreter lock. The other thread then returns from the frame, and the object stands for
memory that holds other things: ``f_back`` gave an int, a list, a dict, or the job ended by SIGSEGV
(docs/decisions/0096-frames-of-other-threads.md). Filling ``f_locals`` has the same gap. From 3.12 on collections begin
only between two bytecodes; until 3.10 frames are objects from the start. A thread's own frames are safe.
"""

from __future__ import annotations

import gc
import sys

NEEDED = sys.version_info[:2] == (3, 11)


class Steady:
    """A context in which no collection begins by itself, if this Python needs that. Threads may be in it at once."""

    __slots__ = ("_collects", "_inside")

    def __init__(self) -> None:
        self._inside = 0
        self._collects = False
        """Whether the program had collections on when the first thread came in."""

    def __enter__(self) -> None:
        if not NEEDED:
            return
        self._inside += 1  # before anything that may let another thread run: else collections might stay off
        if self._inside == 1:
            self._collects = gc.isenabled()
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if not NEEDED:
            return
        self._inside -= 1
        if not self._inside and self._collects:
            gc.enable()

    def after_fork(self) -> None:
        """In a forked child: the thread that was inside is not there."""
        if self._inside and self._collects:
            gc.enable()
        self._inside = 0


STEADY = Steady()
