"""Counts the steps of a capture as their calls end, and marks them in the trace.

A step ends with the call that makes it, so a marked step includes the ``next`` that fed the call, even if that is
Python outside the call. Steps are identified by (kind, name) of their records. The watch sees every record during a
capture and none otherwise: a wrapper on the job's path costs nothing more for it.

Other calls may come between two calls of the step: a validation, predictions, or the program's own evaluation loop.
Each of them is a series of calls that most steps do not make; a single such call may be anything.
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

    from stepscope.agent.capture.orders import Aim
    from stepscope.agent.core.foreign import Foreign

_END = int(Flag.END)
_LOOK_S = 0.25
_NEVER = sys.maxsize
_SECOND_NS = 1_000_000_000
_STRAY = int(Flag.END) | int(Flag.NESTED)
CALLS = frozenset(map(int, kinds_with(Trait.STEP)))
SERIES = 2
"""Number of calls between two calls of the step, none of them usual for a step, that make an evaluation."""
AWAY = 6
"""The same from which no steps are waited for that would only be compared with the traced ones."""


class StepWatch:
    """Watches the steps of one thread. The job's threads call ``record``, the capture's thread calls ``wait``."""

    def __init__(
        self,
        anchors: frozenset[tuple[int, int]],
        thread: int = 0,
        usual: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self.anchors = anchors
        self.usual = usual
        """(kind, name) of other calls that most steps make."""
        self.left = False
        """Whether an evaluation has begun since ``mark``: no further step is marked."""
        self._others = 0
        """Number of calls since the step's last one that most steps do not make."""
        self.thread = thread
        """Id of the thread that makes the steps; 0 until the first has been seen."""
        self.ends = 0
        """Number of calls that have ended."""
        self.marked = 0
        """Number of steps with a complete marker."""
        self.stopped = ""
        """Reason to stop waiting, if there is one."""
        self.enough = False
        """Whether the steps so far suffice, at the request of the one who asked for the capture."""
        self.closed = False
        """Whether no untraced steps are awaited any more."""
        self._goal = _NEVER
        """Number of ended calls at which the waiting thread is woken; earlier wakes would contend with the job."""
        self._wake = allocate_lock()
        self._wake.acquire()
        self._trace_me: Optional[Callable[..., Foreign]] = None
        self._marker: Foreign = None
        self._wanted = 0
        self._aim: Optional[Aim] = None
        self._aimed_at = -1
        """Number of calls that had ended when the step with the aim's moment began; -1 before it."""
        self._last_end_ns = 0
        self._from_ns = 0
        self.ends_ns: list[int] = []
        """Begin of the first marked step, and end of each: CLOCK_MONOTONIC."""
        self._dropped: list[object] = []
        """Markers of steps interrupted by an evaluation, kept because releasing one ends it, which the trace would
        show."""

    def record(self, start_ns: int, dur_ns: int, _arg: int, name: int, kind: int, flags: int, thread: int) -> None:
        """Called for each record by the thread that wrote it."""
        aim = self._aim
        if aim is not None and (kind, name) in aim.pairs and (not aim.flag or flags & aim.flag):
            self._hit(self.ends)
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
        if aim is not None and aim.longer_ns:
            end_ns = start_ns + dur_ns
            if self._last_end_ns and end_ns - self._last_end_ns >= aim.longer_ns:
                self._hit(self.ends - 1)
            self._last_end_ns = end_ns
        if self._trace_me is not None:
            self._mark(self._trace_me, start_ns + dur_ns)
        if self.ends >= self._goal:
            self.wake()

    @property
    def away(self) -> bool:
        """Whether the job does something else, for longer than a moment."""
        return self._others >= AWAY

    def mark(self, trace_me: Optional[Callable[..., Foreign]], steps: int, from_ns: int = 0) -> None:
        """Mark the next ``steps`` whole steps that begin at ``from_ns`` or later with ``trace_me``
        (``_pywrap_traceme.TraceMe``); None stops marking.
        """
        self._from_ns = from_ns
        self.left = False
        self._others = 0
        self._wanted = steps
        self._trace_me = trace_me

    def _leave(self) -> None:
        """Note, on the job's thread, that it evaluates."""
        self._dropped.append(self._marker)
        self._marker = self._trace_me = None
        self._wanted = 0
        self.left = True
        self.wake()

    def _mark(self, trace_me: Callable[..., Foreign], end_ns: int) -> None:
        marker, self._marker = self._marker, None
        if marker is not None:
            marker.Stop()
            self.marked += 1
            self.ends_ns.append(end_ns)
            if self.marked == self._wanted:
                self.wake()
        if self.marked < self._wanted and end_ns >= self._from_ns:
            if not self.marked:
                self.ends_ns = [end_ns]
            self._marker = trace_me(STEP_MARKER, step_num=self.marked, _r=1)

    def _hit(self, ends: int) -> None:
        """Note, on the job's thread, that the moment of the aim has come."""
        self._aim = None
        self._aimed_at = ends
        self.wake()

    def follow(self, aim: Aim) -> None:
        """Wait for the moment of an aim, then for its number of steps; at most so many seconds."""
        began_ns = time.monotonic_ns()
        if aim.begin_ns:
            self.until(lambda: self.enough, min(aim.seconds, (aim.begin_ns - began_ns) / _SECOND_NS))
            return
        self._last_end_ns, self._aimed_at, self._aim = 0, -1, aim
        self.until(lambda: self._aimed_at >= 0 or self.enough, aim.seconds)
        self._aim = None
        if self._aimed_at < 0:
            return
        self._goal = goal = self._aimed_at + aim.skip
        left_s = aim.seconds - (time.monotonic_ns() - began_ns) / _SECOND_NS
        self.until(lambda: self.ends >= goal or self.enough, left_s)
        self._goal = _NEVER

    def wait(self, ends: int, timeout_s: float, enough: Callable[[], bool] = bool) -> bool:
        """Wait for ``ends`` more calls to end. False if that took too long, if ``enough`` holds, or if stopped."""
        self._goal = goal = self.ends + ends
        self.until(lambda: self.ends >= goal or enough(), timeout_s)
        self._goal = _NEVER
        return self.ends >= goal and not self.stopped

    def wait_marked(self, timeout_s: float, enough: Callable[[], bool]) -> None:
        """Wait until all wanted steps are marked, however many come before the first of them."""
        self.until(lambda: self.marked >= self._wanted or enough(), timeout_s)

    def until(self, done: Callable[[], bool], timeout_s: float) -> None:
        """Wait until ``done``, tested four times a second, at each ``wake`` and at the end of the goal's call."""
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
        """Stop recording: the steps so far suffice, and are written."""
        self.enough = True
        self.wake()

    def close(self, why: str) -> None:
        """End with the steps that have been traced; ``why`` there will be no more. Without any, stop."""
        self.closed = True
        if self.marked:
            self.end()
        else:
            self.stop(why)

    def wake(self) -> None:
        """Wake the waiting thread to test its condition."""
        with contextlib.suppress(RuntimeError):  # nobody waits, or another thread was first
            self._wake.release()
