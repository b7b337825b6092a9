"""Windows in which the agent samples Python stacks at 100 Hz, of one recording: no perf, and no rights, are needed.

The samples are records like the usual ones; a window is their time (``derive.stacks.session_stacks``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.collector.captures import window_steps
from stepscope.collector.captures.window_steps import WindowCaptures
from stepscope.tables.errors import CaptureError

if TYPE_CHECKING:
    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.captures.window_steps import Flight
    from stepscope.model.session.session import CaptureInfo

SECONDS, MAX_SECONDS = 5.0, 60.0
HZ = 100


class PythonWindow:
    """The time of one window."""

    def __init__(self, from_ns: int, seconds: float) -> None:
        """From ``from_ns`` on (CLOCK_MONOTONIC)."""
        self.began_ns = from_ns
        self.ended_ns = 0
        self._until_ns = from_ns + int(seconds * 1e9)

    def poll(self, now_ns: int) -> bool:
        """Whether it is over."""
        if not self.ended_ns and now_ns >= self._until_ns:
            self.ended_ns = self._until_ns
        return self.ended_ns > 0

    def stop(self) -> None:
        """End it now, at the latest at its time."""
        self.ended_ns = self.ended_ns or self._until_ns

    def close(self) -> None:
        """Nothing is held."""


class PythonCaptures(WindowCaptures[PythonWindow]):
    """The windows of one recording."""

    kind, way = "python", "agent"

    def begin(self, asked: CaptureExtent, now_ns: int) -> str:
        """Begin a window, once the process samples at that rate, and return its id.

        Raises:
            CaptureError: the process has ended, or has no agent.
        """
        worker = self._recording.drainer.workers.get(asked.worker)
        if worker is None or worker.closed:
            raise CaptureError(
                "Python stacks are sampled from inside, which begins when a process imports a framework; "
                "expected one, or use --kind native"
            )
        seconds = min(asked.seconds or SECONDS, MAX_SECONDS)
        lasts = seconds + window_steps.NOTICE_NS / 1e9
        window_steps.keep_awake(self._recording, asked.worker, lasts, hz=HZ)
        return self._begun(asked, PythonWindow(now_ns + window_steps.NOTICE_NS, seconds))

    def _taken(self, flight: Flight[PythonWindow]) -> CaptureInfo:
        window, origin_ns = flight.window, self._recording.manifest.origin_monotonic_ns
        info = msgspec.structs.replace(
            self._failed(flight),
            outcome="done",
            at_ns=window.began_ns - origin_ns,
            recorded_ns=window.ended_ns - window.began_ns,
        )
        return window_steps.with_cost(self._recording, info, flight.asked)
