"""Steps in gaps of the duty cycle: they were counted, and the observed steps stand for them.

The agent looks at the thread of the steps every 90 ms of a gap: what it did while no call was counted is no step
(``pauses``), and neither is what records show. The rest of the time in which calls were counted is that of the counted
steps: their mean is as exact as the clock. Their components are an estimate, by the shares that they have in all
observed steps. Where no stacks are sampled, there are no looks: then counted steps take on the mean no longer than the
slowest observed steps in a row and no shorter than the fastest; what then remains is not seen, what they exceed it by
is an overlap. Observed steps pay for their wrappers, which counted ones do not have, so that is deducted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.derive.ledger import pauses, wrapped_calls
from stepscope.derive.ledger.life import between
from stepscope.derive.ledger.own_steps import holding_loops
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.ledger.own_steps import OwnSteps
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.report.ledger import Phase
    from stepscope.tables.records import I64

ROW = 8
"""Number of consecutive steps whose mean says how fast steps are at some time: a single step may take any time."""


class UnobservedSteps(Struct, frozen=True, kw_only=True):
    """The steps in gaps."""

    count: int
    """Number of steps in them."""
    parts: Mapping[str, int]
    """Time of each component in them, and under "" of what lies between steps. Nanoseconds."""
    others: Mapping[Phase, int] = field(default_factory=dict)
    """Time of other makers' calls in them."""
    unseen_ns: int = 0
    """Time in gaps that the counted steps do not explain."""
    overlap_ns: int = 0
    """Time by which the counted steps exceed the gaps."""
    pace: float = 1.0
    """Time of the mean counted step, in mean observed steps."""


def spans_of(own: OwnSteps) -> Intervals:
    """When steps were not observed: steps with a gap in them, without pauses at its edges, and the gap after the last
    one. Where calls of Keras hold the steps, only within these.
    """
    steps = own.steps
    broken = intervals.merge(steps.starts[steps.unobserved], steps.ends[steps.unobserved])
    last = int(steps.ends[-1])
    if steps.skipped or steps.unobserved.any():
        broken = intervals.union(broken, between(last, max(last, _span_end(steps))))
    broken = intervals.without(broken, pauses.beside_gaps(own))
    loops = holding_loops(steps)
    return intervals.clip(broken, loops) if len(loops[0]) else broken


def _span_end(steps: Steps) -> int:
    """End of the last gap in which steps were counted."""
    return steps.span[1] if steps.steady.any() else int(steps.ends[-1])


def build(
    own: OwnSteps, spans: Intervals, observed: Mapping[str, float], others: Mapping[Phase, float]
) -> UnobservedSteps:
    """The counted steps.

    Args:
        own: the steps.
        spans: when steps were not observed, without what other records say of that time.
        observed: time of each component in all observed steps after the first ones; under "" the time between them.
        others: observed time of other makers' calls that gaps do not record either, such as a validation in the user's
            own loop.
    """
    later, count = own.later, max(0, own.steps.count - int(own.seen.sum()))
    whole, every = sum(observed.values()), intervals.total(spans)
    if not later.any() or whole <= 0 or not count or not every:
        return UnobservedSteps(count=0, parts={}, unseen_ns=every)
    room = intervals.total(intervals.without(spans, silent(own)))
    usual = whole / int(later.sum())
    if not pauses.looked_at(own.steps.worker, own.steps.thread):
        return _plausible(own, count, observed, every, room)
    share = whole / (whole + sum(others.values()))
    taken = room * share
    return UnobservedSteps(
        count=count,
        parts={name: round(taken * ns / whole) for name, ns in observed.items()},
        others={phase: round(taken * ns / whole) for phase, ns in others.items()},
        unseen_ns=every - room,
        pace=taken / count / usual,
    )


def silent(own: OwnSteps) -> Intervals:
    """Parts of gaps in which no call was counted that goes with the steps. Kinds that gaps record have none."""
    if own.steps.kind in kinds_with(Trait.STAYS):
        return intervals.empty()
    told = own.steps.worker.gaps
    rows = gaps.counting(told, own.steps.kind)
    rows = rows.take(rows.calls > 0)
    return intervals.without(gaps.periods(told), gaps.periods(rows))


def _plausible(own: OwnSteps, count: int, observed: Mapping[str, float], every: int, room: int) -> UnobservedSteps:
    """So many steps, of the time that is nearest to the room for them by the pace of the observed ones."""
    lengths, whole = (own.ends - own.steps.starts)[own.later], sum(observed.values())
    paid = max(0.0, whole - _wrappers_ns(own)) / float(lengths.sum())
    fastest, slowest = _range_of_means(lengths)
    taken = float(np.clip(room, count * fastest * paid, count * slowest * paid))
    return UnobservedSteps(
        count=count,
        parts={name: round(taken * ns / whole) for name, ns in observed.items()},
        unseen_ns=every - room + round(max(0.0, room - taken)),
        overlap_ns=round(max(0.0, taken - room)),
        pace=taken / count * len(lengths) / whole,
    )


def _range_of_means(lengths: I64) -> tuple[float, float]:
    """Mean of the fastest steps in a row, and of the slowest."""
    row = min(ROW, len(lengths))
    totals = np.concatenate(([0], np.cumsum(lengths)))
    means = (totals[row:] - totals[:-row]) / row
    return float(means.min()), float(means.max())


def _wrappers_ns(own: OwnSteps) -> float:
    """What wrapped calls cost in all observed steps after the first ones."""
    steps, later = own.steps, own.later
    return wrapped_calls.in_steps(steps.worker, intervals.merge(steps.starts[later], own.ends[later])).ns[1]
