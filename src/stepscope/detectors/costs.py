"""Costs of findings as shares of the steady wall time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.ledger import pauses
from stepscope.derive.numeric import intervals, proportion
from stepscope.tables.findings import Cost

if TYPE_CHECKING:
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.view import SessionView
    from stepscope.tables.records import F64


def compute_ratio(view: SessionView) -> float:
    """Share of the steady wall time in compute: the most that anything within the compiled step can cost."""
    return view.anatomy.ratio("call") if view.anatomy is not None else 0.0


APART = 0.2
"""Difference of the mean of all steps from that of the timed ones, as a share of it, from which intervals hold it."""


def _of_all_steps(view: SessionView, low: float, high: float) -> tuple[float, float]:
    """The ends of a share of the timed steps as those of all steps: what the timed ones lack may all be of it, and what
    they have too much.
    """
    steps = view.steps
    if steps is None:
        return low, high
    timed, every = steps.steady_ns / steps.steady_count, step_ns(view)
    if abs(every - timed) < APART * every:
        return low, high
    least, most = (low * timed - max(0.0, timed - every)) / every, (high * timed + max(0.0, every - timed)) / every
    return min(low, least), max(high, most)


def step_ns(view: SessionView) -> float:
    """Time of the mean step of all, as reports give it: what a share is in ns. 0 without steps."""
    return view.get(_mean_of_all)


def _mean_of_all(view: SessionView) -> float:
    return pauses.mean_ns(view.steps) if view.steps is not None else 0.0


def in_steps(steps: Steps, spans: Intervals) -> F64:
    """Time within disjoint sorted spans in each steady step: float64[steady step] in ns."""
    return intervals.clipped_sum(*steps.windows, spans).astype(float)


def _reach(steps: Steps, each: F64) -> float:
    """How far a share may be off as only some of the steps were timed; those between two gaps are neighbours."""
    at, (starts, ends) = np.flatnonzero(steps.steady), steps.windows
    groups = np.flatnonzero(np.diff(at, prepend=at[:1] - 2) > 1)
    return proportion.reach(each, (ends - starts).astype(float), groups, steps.count)


def _clip(value: float) -> float:
    return float(min(1.0, max(0.0, value)))


def cost_of(
    view: SessionView,
    ratio: float,
    *,
    low: float | None = None,
    high: float | None = None,
    basis: str = "measured",
    ns_per_step: int | None = None,
    turn_ratio: float | None = None,
    by_time: bool = False,
    each: F64 | None = None,
) -> Cost:
    """Cost of a share of the steady wall time, within 0-1, with the nanoseconds that it is of ``step_ns``.

    A cost paid once is a share of another time: it has its own ``ns_per_step``, spread over all steps. So has one that
    is paid between the steps of each turn: ``ratio`` is then a share of the turn, as ``turn_ratio`` is.

    Where the mean of all steps is known to be another than that of the timed ones, the interval holds what that may
    mean: a cost of something rare and long, of which the timed steps hold too few or too many. Not so if ``by_time``: a
    share of all the time, from what is sampled by time, whether steps were timed or counted.

    ``each``: what the share is of each steady step, in ns (``in_steps``). Where other steps were only counted, the
    interval then holds the error of that sample: of something that few steps have, chance decides how many were timed.
    """
    steps = view.steps
    trace = view.traces.main
    mean = step_ns(view) if steps else trace.periods.mean_ns if trace is not None else 0.0
    ends = min(ratio, ratio if low is None else low), max(ratio, ratio if high is None else high)
    if steps is not None and each is not None:
        off = _reach(steps, each)
        ends = min(ends[0], ratio - off), max(ends[1], ratio + off)
    if ns_per_step is None and turn_ratio is None and not by_time:
        ends = _of_all_steps(view, *ends)
    return Cost(
        ratio=_clip(ratio),
        low=_clip(min(ratio, ends[0])),
        high=_clip(max(ratio, ends[1])),
        ns_per_step=int(_clip(ratio) * mean) if ns_per_step is None else ns_per_step,
        basis=basis,  # type: ignore[arg-type]
        turn_ratio=turn_ratio,
    )
