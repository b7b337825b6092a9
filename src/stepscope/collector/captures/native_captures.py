"""Native sampling windows of one recording: begun on request, decoded, stored, and assigned their cost.

One at a time. Stored are a profile of stacks for each event (``captures/stacks/EVENT-NNNN.parquet``) and the table
``memory_events``.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import msgspec

from stepscope.collector.captures import window_steps
from stepscope.collector.captures.window_steps import WindowCaptures
from stepscope.native.kernel import perf
from stepscope.native.windows.native_window import SECONDS, NativeWindow
from stepscope.store import stacks
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError
from stepscope.wire import commands

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.captures.window_steps import Flight
    from stepscope.model.session.session import CaptureInfo
    from stepscope.native.kernel.perf import Abilities
    from stepscope.native.windows.native_window import WindowResult

PREFIX = ".native-"
"""Prefix of the folder that perf writes to, below ``captures``, which is not part of the session."""
_RATES_NS = 4_000_000_000
"""Period whose activity decides how often the process is sampled."""


class NativeCaptures(WindowCaptures[NativeWindow]):
    """The native windows of one recording."""

    kind, way = "native", "perf"

    def begin(self, asked: CaptureExtent, now_ns: int) -> str:
        """Begin a window and return its id.

        Raises:
            CaptureError: another one is in progress, the process has ended, or perf is missing or may do nothing.
        """
        if self._flight is not None:
            raise CaptureError("another capture is in progress")
        pid = window_steps.pid_of(self._recording, asked.worker)
        can = perf.abilities()
        for missing in can.missing:
            self._recording.note(missing.code, missing.text)
        if not can.perf:
            raise CaptureError(can.missing[0].text)
        identity = commands.new_id()
        folder = self._folder(identity)
        rates = self._rates(pid, now_ns)
        try:
            window = self._window(pid, folder, can, rates, asked.seconds)
        except OSError as error:
            raise CaptureError(f"{folder}: {error.strerror or error}") from error
        hz = 0 if window.watch is not None else rates.frequency
        seconds = window.seconds + perf.COUNT_SECONDS
        window_steps.keep_awake(self._recording, asked.worker, seconds, hz=hz)
        return self._begun(asked, window, identity)

    def _window(self, pid: int, folder: Path, can: Abilities, rates: perf.Rates, seconds: float) -> NativeWindow:
        return NativeWindow(pid, folder, can, rates, seconds or SECONDS)

    def _said(self, flight: Flight[NativeWindow], taken: WindowResult) -> str:
        """The text of a window that has been taken."""
        del flight, taken
        return ""

    def _released(self, flight: Flight[NativeWindow]) -> None:
        shutil.rmtree(self._folder(flight.identity), ignore_errors=True)

    def _folder(self, identity: str) -> Path:
        return self._recording.session / layout.CAPTURES / (PREFIX + identity)

    def _rates(self, pid: int, now_ns: int) -> perf.Rates:
        """The process's counters for the last seconds; cautious values if there are none."""
        parts = self._recording.sampling.processes()
        since = now_ns - self._recording.manifest.origin_monotonic_ns - _RATES_NS
        rows = [part.take((part.pid == pid) & (part.at_ns >= since)) for part in parts]
        seen = [row for row in rows if len(row)]
        if not seen or seen[0].at_ns[0] == seen[-1].at_ns[-1]:
            return perf.Rates(cores=1.0, faults_per_s=100_000.0)
        first, last = seen[0], seen[-1]
        seconds = (int(last.at_ns[-1]) - int(first.at_ns[0])) / 1e9
        cpu = last.cpu_user_ns[-1] + last.cpu_system_ns[-1] - first.cpu_user_ns[0] - first.cpu_system_ns[0]
        return perf.Rates(
            cores=float(cpu) / 1e9 / seconds,
            faults_per_s=float(last.minor_faults[-1] - first.minor_faults[0]) / seconds,
        )

    def _taken(self, flight: Flight[NativeWindow]) -> CaptureInfo:
        info = self._failed(flight)
        origin_ns = self._recording.manifest.origin_monotonic_ns
        began = time.process_time_ns()
        try:
            taken = flight.window.take(origin_ns=origin_ns, window=flight.number)
            files = self._store(taken, flight.number)
        except CaptureError as error:
            return msgspec.structs.replace(info, text=str(error))
        except OSError as error:
            return msgspec.structs.replace(info, text=f"the window could not be stored: {error.strerror or error}")
        for diagnostic in taken.diagnostics:
            self._recording.note(diagnostic.code, diagnostic.text)
        info = msgspec.structs.replace(
            info,
            outcome="done",
            text=self._said(flight, taken),
            at_ns=taken.began_ns,
            recorded_ns=taken.recorded_ns,
            files=files,
            bytes=taken.bytes,
            cpu_ns=taken.perf_cpu_ns,
            read_cpu_ns=time.process_time_ns() - began,
            cost_ns=taken.perf_cpu_ns,
        )
        return window_steps.with_cost(self._recording, info, flight.asked)

    def _store(self, taken: WindowResult, number: int) -> tuple[str, ...]:
        names = []
        for profile in taken.profiles:
            path = stacks.write(self._recording.session, f"{profile.event}-{number:04d}", profile)
            names.append(f"stacks/{path.name}")
        if len(taken.events):
            self._recording.writer.write_table("memory_events", taken.events)
        return tuple(names)
