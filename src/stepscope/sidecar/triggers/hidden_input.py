"""Notices that a running job hides its input, and makes steps: then an analysis may ask for a capture that shows it.

An analysis that comes before there are steps sees nothing, and the next one may come after a short job's end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.sidecar.triggers import repeated_calls
from stepscope.sidecar.triggers.trigger import AGAIN_NS

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.sidecar.triggers.trigger import LastAnalysis, Wish

MAX_TIMES = 3
"""The analysis may see no steps in what repeats: then it is not run for this again and again."""


class HiddenInput:
    """Asks for an analysis of steps that none has seen: where their input has no model, or one came too early."""

    what = "watching the input"

    def __init__(self, recording: Recording, now_ns: int) -> None:
        """Nothing was seen yet."""
        self._recording = recording
        self._began_ns = now_ns
        self._times = 0
        self.wanted: tuple[Wish, ...] = ()
        """None: the analysis asks."""

    def tick(self, now_ns: int, last: LastAnalysis) -> bool:
        """Whether what may be steps repeats, and no analysis has seen steps."""
        if last.steps or now_ns - (last.at_ns or self._began_ns) < AGAIN_NS or self._times >= MAX_TIMES:
            return False
        workers = [w for w in self._recording.drainer.workers.values() if w.unread or last.at_ns]
        found = any(not w.closed and repeated_calls.count(w) >= repeated_calls.MIN_CALLS for w in workers)
        self._times += found
        return found
