"""In each step another member of a synchronous job is the slowest, and all wait for it.

## What it detects
A synchronous job whose members do unequal work from step to step: the longest own time of a step lies well above the
median of the others, and no member is slower by the same in most of them (DST001 then says so). What they do longer in
these steps is said: where it is the wait for input, each step waits for the slowest input of all members.

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
Where it is input, prefetch it. Else give members equal work: sort or bucket samples by length, prefetch more, take rare
work (saving, summaries, garbage collection) at the same step on all members.

## References
Delay costs of wait states (Boehme et al., TOPC 2016); what-if analysis of stragglers (arXiv 2505.05713).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.cluster import members, slow_turns, stragglers, waits
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.model.report.components import COMPONENTS
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.cluster.slow_turns import SlowTurns
    from stepscope.causes.cluster.waits import Waits
    from stepscope.derive.cluster.blame import Blame
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Spread of the median step, as a share of the period."""


INPUT = "input-wait"
OFTEN = stragglers.MIN_LAST
"""Share of the steps from which the member that is the slowest most often is named."""
MOSTLY = 0.5
"""Share of the spread from which a component is what it is."""
EQUAL = Remedy(
    id="equal-work",
    text="give all members equal work in each step: samples sorted or bucketed by length, more prefetching, rare work "
    "at the same step everywhere",
)
PREFETCH = Remedy(
    id="even-input",
    text="let no step wait for the slowest input of all: prefetch(tf.data.AUTOTUNE) after the last stage, which "
    "evens slow elements out if the input is fast enough on the whole; parallel maps and reads; samples of like cost "
    "together",
)


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return
    blame = found.blame
    uneven = blame.spread_median_ns >= params.min_ratio * blame.period_ns
    if uneven and blame.even.low >= params.min_ratio and not stragglers.persistent(blame):  # else said by DST001
        yield _finding(found, blame, view.get(slow_turns.build), params)


def _finding(found: Waits, blame: Blame, turns: SlowTurns | None, params: Params) -> Seen:
    share = blame.even
    mean_ns = share.ratio * blame.period_ns
    if turns is not None and turns.ns < MOSTLY * mean_ns:
        turns = None
    why = f", {format_ns(min(turns.ns, mean_ns))} of it {COMPONENTS[turns.component].word}" if turns else ""
    most = np.nanmax(blame.last_ratio)
    who = "in each step another member is the slowest"
    if most >= OFTEN:
        name = found.members[int(np.nanargmax(blame.last_ratio))].name
        who = f"members are slow in turn, {name} in {format_ratio(most)} of the steps"
    waits_for_input = turns is not None and turns.component == INPUT
    return Seen(
        title=f"{who}, by {format_ns(mean_ns)} in the mean step{why}, and all others wait: equal work would take "
        f"{format_ratio(share.ratio)} off the step",
        confidence=0.8,
        pipeline_stage=COMPONENTS[turns.component].stage if turns is not None else "none",
        where=tuple(line.place for line in turns.lines) if turns is not None else (),
        evidence=(
            Evidence(
                metric="spread_ns",
                value=blame.spread_median_ns,
                unit="ns",
                threshold=params.min_ratio * blame.period_ns,
            ),
            Evidence(
                metric="most_often_ratio",
                value=float(most),
                unit="ratio",
            ),
            Evidence(metric="common_steps", value=float(blame.steps), unit="steps"),
        ),
        cost=Cost(ratio=share.ratio, low=share.low, high=share.high, ns_per_step=round(share.ratio * blame.period_ns)),
        remedies=(PREFETCH if waits_for_input else EQUAL,),
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
