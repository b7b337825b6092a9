"""Notices that a running job hides its input, and makes steps: then an analysis may ask for a capture that shows it.

The whole analysis runs rarely because it costs CPU time. One that comes before there are steps sees nothing, and the
next one may come after a short job's end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.collector.recording.drain import WorkerDrain

MIN_CALLS = 16
"""Of one function: the analysis wants four steps that repeat, and leaves out those that warm up."""
_STEPS = frozenset(kinds_with(Trait.STEP))


def seen(workers: Iterable[WorkerDrain]) -> bool:
    """Whether a process makes steps whose input has no model that can be read."""
    return any(w.unread and not w.closed and calls(w) >= MIN_CALLS for w in workers)


def repeats(workers: Iterable[WorkerDrain]) -> bool:
    """Whether a process makes what may be steps."""
    return any(not w.closed and calls(w) >= MIN_CALLS for w in workers)


def calls(worker: WorkerDrain) -> int:
    """Of what a process called the most, and may be its step."""
    return max((n for (kind, _), n in worker.recent.counts.items() if kind in _STEPS), default=0)
