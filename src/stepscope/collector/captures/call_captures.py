"""Windows in which all system calls of a process are counted: only where a person asks (``captures/calls``)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from stepscope.collector.captures import window_steps
from stepscope.collector.captures.window_steps import WindowCaptures
from stepscope.native.windows.call_window import CallWindow
from stepscope.store import system_calls
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.captures.window_steps import Flight
    from stepscope.model.session.session import CaptureInfo
    from stepscope.tables.system_calls import SystemCalls

SHOWN = 3
"""Rows in the text of a capture."""


class CallCaptures(WindowCaptures[CallWindow]):
    """The windows of one recording."""

    kind, way = "syscalls", "bpf"

    def begin(self, asked: CaptureExtent, now_ns: int) -> str:
        """Begin a window, once the process sees all of its steps, and return its id.

        Raises:
            CaptureError: the process has ended, or its calls cannot be counted.
        """
        from_ns = now_ns + window_steps.NOTICE_NS
        window = CallWindow(window_steps.pid_of(self._recording, asked.worker), from_ns, asked.seconds)
        window_steps.keep_awake(self._recording, asked.worker, window.seconds + window_steps.NOTICE_NS / 1e9)
        return self._begun(asked, window)

    def _taken(self, flight: Flight[CallWindow]) -> CaptureInfo:
        info = self._failed(flight)
        if flight.window.problem:
            return msgspec.structs.replace(info, text=flight.window.problem)
        began = time.process_time_ns()
        calls = flight.window.take(origin_ns=self._recording.manifest.origin_monotonic_ns)
        try:
            path = system_calls.write(self._recording.session, flight.number, calls)
        except OSError as error:
            return msgspec.structs.replace(info, text=f"the window could not be stored: {error.strerror or error}")
        info = msgspec.structs.replace(
            info,
            outcome="done",
            text=_text(calls),
            at_ns=calls.at_ns,
            recorded_ns=calls.wall_ns,
            files=(f"calls/{path.name}",),
            bytes=path.stat().st_size,
            read_cpu_ns=time.process_time_ns() - began,
        )
        return window_steps.with_cost(self._recording, info, flight.asked)


def _text(calls: SystemCalls) -> str:
    """``41,200 system calls in 5.00 s; python pwrite64 frames.bin 12 % of the window, 3,100 calls``.

    Of the main thread: those of a pool mostly wait for work.
    """
    total = sum(one.count for one in calls.calls)
    rows = [
        f"{one.thread or one.native} {one.call}{' ' + one.target if one.target else ''} "
        f"{format_ratio((one.total_ns + one.unfinished_ns) / calls.wall_ns)} of the window, {one.count:,} calls"
        for one in sorted(calls.calls, key=lambda one: one.native != calls.pid)[:SHOWN]
    ]
    return f"{total:,} system calls in {format_ns(calls.wall_ns)}; {'; '.join(rows) or 'none'}"
