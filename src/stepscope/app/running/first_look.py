"""Checks the first look, which a job has taken by itself: did it show the job's own steps?

The process elected them within a second (``agent.capture.first_look``): it may have seen an evaluation, a warm-up, or a
prediction next to the training. Whether it did shows in the next analysis, which is run early if other calls repeat
instead of the traced ones. A look at the right steps answers all who would ask for an op trace; a look at others is
repeated once, within the budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.app.running import capture_size, capture_target
from stepscope.collector.captures.reason import FIRST
from stepscope.errors import CaptureError
from stepscope.model.api.capture_ask import CaptureAsk
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.app.running.live import Live
    from stepscope.collector.recorder import Recording
    from stepscope.model.session.session import CaptureInfo

GONE_NS = 3_000_000_000
"""Time without one of the traced calls after which others may be the steps."""
OTHERS = 16
"""Calls of others that must have come meanwhile: an analysis needs as many to see steps."""
MAX_LOOKS = 3
"""Analyses that are run early for this."""
FRESH_NS = 10_000_000_000
OTHER_STEP = 2.0
"""Factor between the traced steps and the job's from which they are others, even of the same call."""
_STEPS = frozenset(map(int, kinds_with(Trait.STEP)))


class FirstLook:
    """The first look of a recording."""

    def __init__(self, recording: Recording, live: Live) -> None:
        """There is none yet."""
        self._recording = recording
        self._live = live
        self._made: CaptureInfo | None = None
        self._wrong = False
        self._checked_ns = 0
        self._looks = 0
        self._counts = (0, 0)
        self._grown_ns = 0

    @property
    def answers(self) -> bool:
        """Whether it was taken, and nothing shows that its steps are not the job's: no detector needs another."""
        return self._made is not None and not self._wrong

    def made(self, done: CaptureInfo, now_ns: int) -> None:
        """It has ended."""
        if done.outcome == "done":
            self._made, self._grown_ns = done, now_ns
            self._counts = self._count(done)

    def wrong(self, now_ns: int) -> bool:
        """Whether it must be repeated; true once at most."""
        made = self._made
        if made is None or self._wrong:
            return False
        if self._looks < MAX_LOOKS and self._gone(made, now_ns):
            self._looks += 1
            self._grown_ns = now_ns
            self._live.refresh(now_ns, FRESH_NS)
        if self._live.analysed_ns > max(self._checked_ns, made.at_ns + self._recording.manifest.origin_monotonic_ns):
            self._checked_ns = self._live.analysed_ns
            self._wrong = self._shows_others(made)
        return self._wrong

    def _count(self, made: CaptureInfo) -> tuple[int, int]:
        """(calls of the traced steps, calls of what else may be steps) so far, of all processes."""
        mine = others = 0
        for worker in self._recording.drainer.workers.values():
            for (kind, name), count in worker.recent.counts.items():
                if worker.key == made.worker and (kind, name) in made.anchors:
                    mine += count
                elif kind in _STEPS:
                    others += count
        return mine, others

    def _gone(self, made: CaptureInfo, now_ns: int) -> bool:
        """Whether the traced calls have ceased, and others repeat."""
        mine, others = self._count(made)
        if mine != self._counts[0]:
            self._counts, self._grown_ns = (mine, others), now_ns
        return now_ns - self._grown_ns >= GONE_NS and others - self._counts[1] >= OTHERS

    def _shows_others(self, made: CaptureInfo) -> bool:
        """Whether a capture of the job's steps would be of other calls, or of much longer or shorter steps."""
        if self._live.steps is None:
            return False
        try:
            asked = capture_target.resolve(CaptureAsk(id=FIRST.word), FIRST, self._recording, self._live)
        except CaptureError:
            return False
        if asked.worker != made.worker or set(made.anchors).isdisjoint({*asked.anchors, *asked.usual}):
            return True
        usual, traced = capture_size.step_ns(self._live.steps), made.step_ns
        return bool(usual and traced) and not 1 / OTHER_STEP <= usual / traced <= OTHER_STEP
