"""Windows in which all system calls of a process are counted: only where a person asks (``captures/calls``)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from stepscope.collector.captures import window_steps
from stepscope.collector.native.call_window import CallWindow
from stepscope.model.session.session import CaptureInfo
from stepscope.store import system_calls
from stepscope.units import format_ns, format_ratio
from stepscope.wire import commands

if TYPE_CHECKING:
    from stepscope.collector.captures.op_captures import Asked
    from stepscope.collector.recording.owner import Owner
    from stepscope.model.session.system_calls import SystemCalls

KIND, WAY = "syscalls", "bpf"
SHOWN = 3
"""Rows in the text of a capture."""


@dataclass(slots=True, kw_only=True)
class _Flight:
    """A window in progress."""

    identity: str
    asked: Asked
    window: CallWindow
    settled_ns: int = 0


class CallCaptures:
    """The windows of one recording, one at a time."""

    def __init__(self, recording: Owner) -> None:
        """Begin without a window."""
        self._recording = recording
        self._flight: _Flight | None = None

    @property
    def busy(self) -> bool:
        """Whether a window is in progress."""
        return self._flight is not None

    def begin(self, asked: Asked, now_ns: int) -> str:
        """Begin a window, once the process sees all of its steps, and return its id.

        Raises:
            CaptureError: the process has ended, or its calls cannot be counted.
        """
        from_ns = now_ns + window_steps.NOTICE_NS
        window = CallWindow(window_steps.pid_of(self._recording, asked.worker), from_ns, asked.seconds)
        window_steps.keep_awake(self._recording, asked.worker, window.seconds + window_steps.NOTICE_NS / 1e9)
        self._flight = _Flight(identity=commands.new_id(), asked=asked, window=window)
        return self._flight.identity

    def poll(self, now_ns: int, *, final: bool = False) -> CaptureInfo | None:
        """The window that has just finished, returned once; its entry is then in the manifest."""
        flight = self._flight
        if flight is None:
            return None
        if final:
            flight.window.stop()
        elif not flight.window.poll(now_ns):
            return None
        flight.settled_ns = flight.settled_ns or now_ns + window_steps.SETTLE_NS
        if not final and now_ns < flight.settled_ns:
            return None
        self._flight = None
        try:
            info = self._taken(flight)
        finally:
            flight.window.close()
        self._recording.add_capture(info)
        return info

    def close(self, now_ns: int) -> None:
        """Take what is there, because the job has ended."""
        self.poll(now_ns, final=True)

    def _taken(self, flight: _Flight) -> CaptureInfo:
        asked, manifest = flight.asked, self._recording.manifest
        info = CaptureInfo(
            id=flight.identity,
            kind=KIND,
            way=WAY,
            outcome="failed",
            asked_by=asked.by.word,
            request=asked.request,
            worker=asked.worker,
            title=asked.title,
        )
        began = time.process_time_ns()
        if flight.window.problem:
            return msgspec.structs.replace(info, text=flight.window.problem)
        calls = flight.window.take(origin_ns=manifest.origin_monotonic_ns)
        number = 1 + sum(capture.kind == KIND and capture.outcome == "done" for capture in manifest.captures)
        try:
            path = system_calls.write(self._recording.session, number, calls)
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
        return window_steps.with_cost(self._recording, info, asked)


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
