"""How often a process of a running job has called what may be its step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from stepscope.collector.recording.drain import WorkerDrain

MIN_CALLS = 16
"""Of one function: the analysis wants four steps that repeat, and leaves out those that warm up."""
_STEPS = frozenset(kinds_with(Trait.STEP))


def count(worker: WorkerDrain) -> int:
    """Calls of what a process called the most, and may be its step."""
    return max((n for (kind, _), n in worker.recent.counts.items() if kind in _STEPS), default=0)
