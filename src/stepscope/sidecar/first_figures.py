"""When the first figures of a job are due: soon after its first steps, long before its findings.

Findings need a whole analysis, for which some time must have passed; the rate and the split of the step need a
twentieth of a second of the sidecar, a few times in the first seconds of a job's steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.collector.recorder import Recording

MIN_CALLS = 5
"""Calls of what may be steps, of one name, from which there may be figures."""
AGAIN_NS = (1_000_000_000, 1_000_000_000, 2_000_000_000, 4_000_000_000, 8_000_000_000, 16_000_000_000)
"""Times between two looks: as steps go on, the first ones, which are slower, count less."""
_STEPS = frozenset(map(int, (*kinds_with(Trait.STEP), *kinds_with(Trait.UPDATE))))
"""Calls that may be steps: an eager loop, or one of PyTorch, has its optimizer's."""


class FirstFigures:
    """When to look."""

    def __init__(self, recording: Recording) -> None:
        """No step has been seen."""
        self._recording = recording
        self._looks = 0
        self._due_ns = 0

    @property
    def over(self) -> bool:
        """Whether there will be no more looks."""
        return self._looks > len(AGAIN_NS)

    def due(self, now_ns: int) -> bool:
        """Whether to look now; each time that it says so counts as a look."""
        if self.over or now_ns < self._due_ns or self._most_calls() < MIN_CALLS:
            return False
        self._due_ns = now_ns + AGAIN_NS[min(self._looks, len(AGAIN_NS) - 1)]
        self._looks += 1
        return True

    def _most_calls(self) -> int:
        workers = self._recording.drainer.workers.values()
        return max((n for w in workers for (kind, _), n in w.recent.counts.items() if kind in _STEPS), default=0)
