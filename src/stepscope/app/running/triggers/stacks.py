"""Asks for one window of native stacks once there are steps, where the run is made for it (``rundir.Job.stacks``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.app.running.triggers.trigger import Wish
from stepscope.collector.captures import reason

if TYPE_CHECKING:
    from stepscope.app.running.triggers.trigger import LastAnalysis
    from stepscope.collector.recorder import Recording


class Stacks:
    """A job that is well has none of the evidence on which stacks are sampled; a comparison needs its own as well."""

    what = "waiting for steps whose stacks are wanted"

    def __init__(self, recording: Recording) -> None:
        """Nothing was asked yet."""
        self._recording = recording
        self.wanted: tuple[Wish, ...] = ()
        """The window, from the first analysis on that has found steps."""

    def tick(self, now_ns: int, last: LastAnalysis) -> bool:
        """Look; never asks for an analysis."""
        del now_ns
        job = self._recording.job
        if last.steps and not self.wanted and job is not None and job.stacks:
            self.wanted = (Wish(by=reason.STACKS, kind="native"),)
        return False
