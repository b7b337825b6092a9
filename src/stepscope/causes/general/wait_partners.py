"""What the other Python threads of the process do while the thread of the steps waits for a lock or a queue.

The agent samples all of them in the same tick, so samples with the same time belong together. A thread that is busy, or
waits for something that is not a lock, at most of these moments is what the step waits for. If none is, and others wait
in locks, they wait for the thread of the steps in turn: the two hand work over to each other.

Serves the general detector of waits (``causes.general.waits``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.python import stack_samples, wait_reasons
from stepscope.model.log.events import ThreadSeen
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.python.wait_reasons import Reason
    from stepscope.derive.steps_view import StepsView

HOLDS = 0.5
"""Share of the moments at which a function must run, so that the step waits for it."""
FOLLOWS = 0.2
"""Difference of that share from the moments at which the step does not wait, for a thread that does not run itself."""
MIN_OTHERS = 3
"""Moments at which the step does not wait; fewer cannot be compared with."""
_WAITING = frozenset({"sleep", "file", "socket", "pipe", "process"})
"""Reasons for which a thread may hold up another; one that waits for its own client or for events is idle."""


class Partner(Struct, frozen=True, kw_only=True):
    """Other threads in one function."""

    threads: tuple[str, ...]
    spot: Spot
    """The line at which they are seen most often."""
    ratio: float
    """Share of the moments at which one of them is there."""
    reason: Reason
    """What they do there most often; ``unknown``: they were not looked at, and count as running."""
    follows: bool
    """Whether they are there clearly more often when the thread of the steps waits than when it does not."""

    @property
    def works(self) -> bool:
        """Whether they can be what the step waits for: they run; or they wait for something themselves, in step with
        it. A thread that always sleeps has nothing to do with the step.
        """
        return self.reason in {"runs", "unknown", "gil", "native"} or (self.reason in _WAITING and self.follows)


class Partners(Struct, frozen=True, kw_only=True):
    """The other threads."""

    holder: Partner | None
    """Who works while the step's thread waits."""
    waiting: tuple[Partner, ...]
    """Who waits for a lock or queue meanwhile."""


def of(view: StepsView, waits: Sequence[Sample]) -> Partners:
    """What other threads do at the moments of these samples."""
    moments = {sample.at for sample in waits}
    every = {sample.at for sample in view.samples if not sample.on_cpu}
    groups: dict[tuple[str, str], list[tuple[int, Sample]]] = defaultdict(list)
    for thread, sample in _others(view, every):
        spot = sample.culprit
        if spot is not None and not wait_reasons.waits_for_end(sample):
            groups[spot.file, spot.function].append((thread, sample))
    names = {thread.id: thread.name for thread in view.worker.all(ThreadSeen)}
    partners = [_partner(view, group, names, moments, every - moments) for group in groups.values()]
    holder = max((one for one in partners if one.works), key=lambda one: one.ratio, default=None)
    waiting = [one for one in partners if one.reason == "lock" and one.ratio > 0]
    return Partners(
        holder=holder if holder is not None and holder.ratio >= HOLDS else None,
        waiting=tuple(sorted(waiting, key=lambda partner: -partner.ratio)),
    )


def _others(view: StepsView, moments: set[int]) -> Iterable[tuple[int, Sample]]:
    """Samples of the other threads at these moments."""
    records = view.worker.records
    threads = np.unique(records.thread[records.kind == Kind.SAMPLE])
    others = threads[threads != view.steps.thread].tolist()
    return (one for one in stack_samples.by_thread(view.worker, others) if one[1].at in moments)


def _partner(
    view: StepsView, group: Sequence[tuple[int, Sample]], names: dict[int, str], waits: set[int], others: set[int]
) -> Partner:
    """The threads of one function, at moments in which the step's thread waits, and in which it does not."""
    busy = [sample for _, sample in group if sample.weight_ns]
    inside = [sample for sample in busy if sample.at in waits]
    idle = [sample for _, sample in group if not sample.weight_ns and sample.at in waits]
    locked = sum(map(wait_reasons.waits_in_lock, idle)) * 2 > len(idle)
    reasons = [reason for s in inside if (reason := wait_reasons.reason(s, view.source_of)) != "unknown"]
    doing: Reason = Counter(reasons).most_common(1)[0][0] if reasons else "unknown"
    if len(idle) > len(inside) or not inside:
        doing = "lock" if locked and idle else "other"
    shown = inside or idle or busy or [sample for _, sample in group]
    spots = [spot for sample in shown if (spot := sample.culprit) is not None]
    share = _share(inside, waits)
    elsewhere = _share([sample for sample in busy if sample.at in others], others)
    return Partner(
        threads=tuple(sorted({names.get(thread, "") for thread, _ in group} - {""})),
        spot=max(spots, key=spots.count),
        ratio=share if inside and doing != "lock" else _share(idle or inside, waits),
        reason=doing,
        follows=len(others) >= MIN_OTHERS and share - elsewhere >= FOLLOWS,
    )


def _share(samples: Sequence[Sample], moments: set[int]) -> float:
    return len({sample.at for sample in samples}) / len(moments) if moments else 0.0
