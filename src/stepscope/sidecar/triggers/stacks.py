"""Asks for one window of native stacks once there are steps, where the run is for it (``rundir.JobFacts.stacks``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.collector.captures import reason
from stepscope.sidecar.triggers import repeated_calls
from stepscope.sidecar.triggers.trigger import AGAIN_NS, Wish

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording
    from stepscope.sidecar.triggers.trigger import LastAnalysis


class Stacks:
    """A job that is well has none of the evidence on which stacks are sampled; a comparison needs its own as well."""

    what = "waiting for steps whose stacks are wanted"

    def __init__(self, recording: Recording, began_ns: int) -> None:
        """Nothing was asked yet."""
        self._recording = recording
        self._began_ns = began_ns
        self.wanted: tuple[Wish, ...] = ()
        """The window, from the first analysis on that has found steps."""

    def tick(self, now_ns: int, last: LastAnalysis) -> bool:
        """Whether what may be steps repeats, and no analysis has seen steps: such a run is short."""
        job = self._recording.job
        if job is None or not job.stacks or self.wanted:
            return False
        if last.steps:
            self.wanted = (Wish(by=reason.STACKS, kind="native"),)
            return False
        workers = self._recording.drainer.workers.values()
        goes_on = any(not w.closed and repeated_calls.count(w) >= repeated_calls.MIN_CALLS for w in workers)
        return goes_on and now_ns - (last.at_ns or self._began_ns) >= AGAIN_NS
