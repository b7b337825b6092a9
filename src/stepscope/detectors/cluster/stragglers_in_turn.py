"""In each step another member of a synchronous job is the slowest, and all wait for it.

## What it detects
A synchronous job whose members do unequal work from step to step: the longest own time of a step lies well above the
median of the others, and no member is the slowest in most steps.

## Why it matters
A synchronous step lasts as long as its slowest member: with many members, rare slow steps of each become frequent slow
steps of all.

## Evidence
`spread_ns`: longest own time of the median step beyond the median of the others, by each member's own clock.
`most_often_ratio`: share of the steps in which the most frequent of the slowest was it. `common_steps`.

## Known limits
As of DST001. What it would gain if all were equally fast is measured on these steps; to make them so may be impossible
where the data are unequal by nature.

## Remedy
Give members equal work: sort or bucket samples by length, prefetch more, take rare work (saving, summaries, garbage
collection) at the same step on all members.

## References
Delay costs of wait states (Boehme et al., TOPC 2016); what-if analysis of stragglers (arXiv 2505.05713).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.cluster import members, waits
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.model.report.finding import Cost, Evidence, Remedy
from stepscope.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.cluster.blame import Blame
    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Spread of the median step, as a share of the period."""
    max_one: Ratio = Ratio(0.6)
    """Share of the steps from which one member is the straggler."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return
    blame = found.blame
    uneven = blame.spread_median_ns >= params.min_ratio * blame.period_ns
    if uneven and blame.even.low >= params.min_ratio and np.nanmax(blame.last_ratio) < params.max_one:
        yield _finding(blame, params)


def _finding(blame: Blame, params: Params) -> Seen:
    share = blame.even
    return Seen(
        title=f"in each step another member is the slowest, by {format_ns(blame.spread_median_ns)}, and all others "
        f"wait: equal work would take {format_ratio(share.ratio)} off the step",
        confidence=0.8,
        evidence=(
            Evidence(
                metric="spread_ns",
                value=blame.spread_median_ns,
                unit="ns",
                threshold=params.min_ratio * blame.period_ns,
            ),
            Evidence(
                metric="most_often_ratio",
                value=float(np.nanmax(blame.last_ratio)),
                unit="ratio",
                threshold=params.max_one,
            ),
            Evidence(metric="common_steps", value=float(blame.steps), unit="steps"),
        ),
        cost=Cost(ratio=share.ratio, low=share.low, high=share.high, ns_per_step=round(share.ratio * blame.period_ns)),
        remedies=(
            Remedy(
                id="equal-work",
                text="give all members equal work in each step: samples sorted or bucketed by length, more "
                "prefetching, rare work at the same step everywhere",
            ),
        ),
    )


DETECTOR = Detector(
    code="DST002",
    name="stragglers-in-turn",
    introduced_stage="training",
    exposed_stage="training",
    needs=frozenset({Signal.MEMBERS}),
    params=Params(),
    detect=detect,
    applies=members.why_not,
)
