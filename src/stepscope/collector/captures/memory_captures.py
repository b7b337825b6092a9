"""Windows of memory of one recording: who made it grow, and who held it at its highest (``captures/stacks``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.collector.captures import window_steps
from stepscope.collector.captures.native_captures import NativeCaptures
from stepscope.derive.stacks import memory_stacks
from stepscope.native.windows.memory_window import MemoryWindow
from stepscope.tables.units import format_bytes, format_ns, format_ratio
from stepscope.wire import commands

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stepscope.collector.captures.asked import CaptureExtent
    from stepscope.collector.captures.window_steps import Flight
    from stepscope.model.log.memory import MemoryHeld
    from stepscope.model.session.session import CaptureInfo
    from stepscope.native.kernel.perf import Abilities, Rates
    from stepscope.native.windows.native_window import NativeWindow, WindowResult
    from stepscope.tables.stacks import StackProfile

BOTH = 2
"""Looks at variables that a window has: at its begin and its end."""
LEAST_GROWN_BYTES = 1 << 20
SHOWN = 3
"""Places in the text of a capture."""
_LEAST = 0.03
"""Smallest share of a place in it."""


class MemoryCaptures(NativeCaptures):
    """The windows of memory."""

    kind, way = "memory", "perf"

    def begin(self, asked: CaptureExtent, now_ns: int) -> str:
        """Begin a window, as ``NativeCaptures``; the process also logs what its variables hold."""
        identity = super().begin(asked, now_ns)
        self._ask_held(asked.worker)
        return identity

    def poll(self, now_ns: int, *, final: bool = False) -> CaptureInfo | None:
        """As ``WindowCaptures``; when the window is over, the process logs again what its variables hold."""
        open_before = self._flight if self.recording else None
        info = super().poll(now_ns, final=final)
        if open_before is not None and not self.recording and not final:
            self._ask_held(open_before.asked.worker)
        return info

    def _ask_held(self, key: str) -> None:
        lost = "what variables hold is not known in a window of memory"
        window_steps.tell(self._recording, key, {"kind": commands.HELD}, lost)

    def _window(self, pid: int, folder: Path, can: Abilities, rates: Rates, seconds: float) -> NativeWindow:
        return MemoryWindow(pid, folder, can, rates, seconds)

    def _said(self, flight: Flight[NativeWindow], taken: WindowResult) -> str:
        """``memory grew by 80 MiB in 10 s (90 MiB came and stayed, 10 MiB went), touched at train.py:41 keep ...``."""
        window = flight.window
        amounts = window.amounts if isinstance(window, MemoryWindow) else None
        if amounts is None:
            return ""
        ours = self._recording.manifest.run_dir
        by_event = {profile.event: profile for profile in taken.profiles}
        change = amounts.last - amounts.first
        word = "grew" if change >= 0 else "shrank"
        grown, highest = (_places(by_event[event], ours) for event in memory_stacks.EVENTS)
        came, went = format_bytes(amounts.came), format_bytes(amounts.went)
        text = (
            f"memory {word} by {format_bytes(abs(change))} in {amounts.seconds:.1f} s ({came} came and stayed, {went} "
        )
        text += f"went), touched at {grown}; highest {format_bytes(amounts.highest)} at "
        text += f"{format_ns(amounts.highest_at_ns)}: {highest}"
        if amounts.missed:
            text += f"; {format_bytes(amounts.missed)} for too short a time to look"
        worker = self._recording.drainer.workers.get(flight.asked.worker)
        return text + (_variables(worker.held) if worker is not None else "")


def _places(profile: StackProfile, ours: str) -> str:
    shares = [(place, share) for place, share in memory_stacks.shares(profile, ours) if share >= _LEAST]
    return ", ".join(f"{place} {format_ratio(share)}" for place, share in shares[:SHOWN]) or "nothing"


def _variables(looks: Sequence[MemoryHeld]) -> str:
    """``; variables that grew: history (list, train.py) 12 MiB to 92 MiB``."""
    if len(looks) < BOTH:
        return ""
    before, after = ({(row.file, row.function, row.name): row for row in look.rows} for look in looks)
    grown = [(row, row.bytes - (before[key].bytes if key in before else 0)) for key, row in after.items()]
    grown = sorted((pair for pair in grown if pair[1] >= LEAST_GROWN_BYTES), key=lambda pair: -pair[1])
    said = [
        f"{row.name} ({row.kind}, {row.file.rpartition('/')[2]} {row.function}) "
        f"{format_bytes(row.bytes - more)} to {format_bytes(row.bytes)}"
        for row, more in grown[:SHOWN]
    ]
    return f"; variables that grew: {', '.join(said)}" if said else ""
