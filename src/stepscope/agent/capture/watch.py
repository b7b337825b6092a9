"""Counts the steps of a capture as their calls end, and marks them in the trace.

A step ends where the call that makes it ends, so what is marked holds the ``next`` that fed the call, also where that
is Python outside of it. The steps are told by (kind, name) of their records; the watch is told of each record while
there is a capture, and of none else: a wrapper on the job's path costs nothing more for it.

Between two calls of the step others may come: a validation, predictions, an evaluation loop of the program's own. Each
of them is a series of calls that most steps do not make; a single such call may be anything.
"""

from __future__ import annotations

import contextlib
import sys
import time
from _thread import allocate_lock

from stepscope.wire.kinds import STEP_MARKER, Flag, Trait, kinds_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

_END = int(Flag.END)
_LOOK_S = 0.25
_NEVER = sys.maxsize
_SECOND_NS = 1_000_000_000
_STRAY = int(Flag.END) | int(Flag.NESTED)
CALLS = frozenset(map(int, kinds_with(Trait.STEP)))
SERIES = 2
"""So many calls that are not the step's, between two of its calls, are an evaluation."""


class StepWatch:
    """The steps of one thread. ``record`` is called by the job's threads, ``wait`` by the capture's."""

    def __init__(
        self,
        anchors: frozenset[tuple[int, int]],
        thread: int = 0,
        usual: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self.anchors = anchors
        self.usual = usual
        """Other calls that most steps make."""
        self.left = False
        """An evaluation has begun since ``mark``: no step is marked any more."""
        self._others = 0
        """Calls since the step's last one that most steps do not make."""
        self.thread = thread
        """Whose steps; 0 until the first has been seen."""
        self.ends = 0
        """Calls that have ended."""
        self.marked = 0
        """Steps whose marker is whole."""
        self.stopped = ""
        """Why nobody shall wait any more."""
        self.enough = False
        """Whoever asked wants no more steps than there are."""
        self._goal = _NEVER
        """Calls after whose end somebody looks; nobody is woken for others, who would then contend with the job."""
        self._wake = allocate_lock()
        self._wake.acquire()
        self._trace_me: Optional[Callable[..., Foreign]] = None
        self._marker: Foreign = None
        self._wanted = 0
        self._dropped: list[object] = []
        """Markers of steps that an evaluation came into: to let go of one ends it, which the trace would show."""

    def record(self, _start_ns: int, _dur_ns: int, _arg: int, name: int, kind: int, flags: int, thread: int) -> None:
        """A record has been written, by the thread that it is about."""
        if (kind, name) not in self.anchors:
            if kind in CALLS and thread == self.thread and not flags & _STRAY and (kind, name) not in self.usual:
                self._others += 1
                if self._others == SERIES and self._wanted:
                    self._leave()
            return
        if flags & _END or thread != (self.thread or thread):
            return
        self.thread = thread
        self._others = 0
        self.ends += 1
        if self._trace_me is not None:
            self._mark(self._trace_me)
        if self.ends >= self._goal:
            self.wake()

    def mark(self, trace_me: Optional[Callable[..., Foreign]], steps: int) -> None:
        """Mark the next ``steps`` whole steps with ``trace_me`` (``_pywrap_traceme.TraceMe``); None ends that."""
        self.left = False
        self._others = 0
        self._wanted = steps
        self._trace_me = trace_me

    def _leave(self) -> None:
        """On the job's thread: it evaluates."""
        self._dropped.append(self._marker)
        self._marker = self._trace_me = None
        self._wanted = 0
        self.left = True
        self.wake()

    def _mark(self, trace_me: Callable[..., Foreign]) -> None:
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.Stop()
            self.marked += 1
        if self.marked < self._wanted:
            self._marker = trace_me(STEP_MARKER, step_num=self.marked, _r=1)

    def wait(self, ends: int, timeout_s: float, enough: Callable[[], bool] = bool) -> bool:
        """Wait for so many more calls to end; False when that took too long, or was ``enough``, or is stopped."""
        self._goal = goal = self.ends + ends
        self.until(lambda: self.ends >= goal or enough(), timeout_s)
        self._goal = _NEVER
        return self.ends >= goal and not self.stopped

    def until(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Wait until ``done``; it is asked four times a second, at each ``wake`` and at the end of the goal's call."""
        deadline_ns = time.monotonic_ns() + int(timeout_s * _SECOND_NS)
        while not self.stopped and not done():
            left_s = (deadline_ns - time.monotonic_ns()) / _SECOND_NS
            if left_s <= 0:
                return
            self._wake.acquire(timeout=min(left_s, _LOOK_S))

    def stop(self, why: str) -> None:
        """End every ``wait``."""
        self.stopped = self.stopped or why
        self.wake()

    def end(self) -> None:
        """There is enough: what has been recorded is written."""
        self.enough = True
        self.wake()

    def wake(self) -> None:
        """Have who waits look again."""
        with contextlib.suppress(RuntimeError):  # nobody waits, or another thread was first
            self._wake.release()
