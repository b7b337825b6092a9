"""One member of a synchronous job makes all others wait, step after step.

## What it detects
A worker, or a minority of them, that does more alone, between two exchanges, than the others in nearly every step: it
reads input, runs callbacks or Python, or computes longer. All leave the exchange together, so all wait for it.

## Why it matters
A synchronous step lasts as long as its slowest member. The others look slow where they are not: their call of the step
lasts longest, because they wait in it, and that of the culprit is the shortest.

## Evidence
`own_ns` and `others_own_ns`: from the end of one call to the begin of the next, by each member's own clock, so that
differences between clocks say nothing false. `blame_ns`: the median step's excess over the median of the others.
`last_ratio`: share of the steps in which its own time was the longest. `waits_ns`: what each of the others waits.
`common_steps`: steps of all members that were compared.

## Known limits
Work inside the compiled step is seen where op traces of all members show it, and only large differences are then
counted; otherwise a member that computes longer looks like slow transfer. Members without a barrier (asynchronous
training with parameter servers) are not compared. Steps of members are paired by when they end, or by their rhythm
where clocks are not known.

## Remedy
Mend what that member does between its calls: its own findings say what. If it does the same as the others, look at its
host.

## References
Delay costs of wait states (Boehme et al., TOPC 2016); what-if analysis of stragglers (arXiv 2505.05713).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.causes.cluster import members, stragglers, waits
from stepscope.causes.general import spent_lines
from stepscope.derive import steps_view
from stepscope.derive.cluster import blame as of_members
from stepscope.detectors.base import Detector, Seen, Signal
from stepscope.model.report.components import COMPONENTS
from stepscope.model.report.finding import Cost, Evidence, Remedy
from stepscope.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.cluster.waits import Waits
    from stepscope.derive.cluster.blame import Blame
    from stepscope.derive.view import SessionView
    from stepscope.model.report.finding import PipelineStage, Place

MOST_NAMES = 3
"""Most stragglers that the title names."""
MIN_PART = 0.1
"""Share of what a straggler does longer from which the title says what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = stragglers.MIN_RATIO
    """Excess of the median step, as a share of the period."""
    spreads: float = stragglers.SPREADS
    """It must be so many times the usual deviation of the member's own time."""
    min_last: Ratio = stragglers.MIN_LAST
    """Share of the steps in which one of them must be the slowest."""
    max_group: Ratio = stragglers.MAX_GROUP
    """Share of the members that can be called stragglers; two of three are not."""


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return
    group = stragglers.persistent(
        found.blame,
        min_ratio=params.min_ratio,
        spreads=params.spreads,
        min_last=params.min_last,
        max_group=params.max_group,
    )
    if group and not (len(group) == 1 and found.batch_explains(group[0])):  # said by DST003
        yield _finding(found, found.blame, group, params)


def _finding(found: Waits, blame: Blame, group: list[int], params: Params) -> Seen:
    first = group[0]
    share = blame.gain[first]
    if len(group) > 1:
        share = of_members.gain_of(found.calls, found.pairing, group, found.inside_ns)
    others = [j for j in range(len(found.members)) if j not in group and np.isfinite(blame.own_ns[j])]
    names = ", ".join(found.members[j].name for j in group[:MOST_NAMES])
    names += " and others" if len(group) > MOST_NAMES else ""
    more = float(blame.blame_median_ns[first])
    what, stage, where = _why(found, first, more)
    computes = found.inside_beyond_ns(first) > more / 2
    waiting = float(blame.waits_ns[others].mean())
    verb = "holds" if len(group) == 1 else "hold"
    return Seen(
        title=f"{names} {verb} the other{'s' if len(others) > 1 else ''} back: {format_ns(more)} more in each step"
        f"{what}; without that, a step takes {format_ratio(share.ratio)} less",
        confidence=0.9 if found.clocks[first] is not None else 0.8,
        pipeline_stage=stage,
        where=where,
        evidence=(
            Evidence(metric="own_ns", value=float(blame.own_median_ns[first]), unit="ns"),
            Evidence(metric="others_own_ns", value=float(np.median(blame.own_median_ns[others])), unit="ns"),
            Evidence(metric="blame_ns", value=more, unit="ns", threshold=params.min_ratio * blame.period_ns),
            Evidence(
                metric="last_ratio",
                value=float(sum(blame.last_ratio[j] for j in group)),
                unit="ratio",
                threshold=params.min_last,
            ),
            Evidence(metric="waits_ns", value=waiting, unit="ns"),
            Evidence(metric="common_steps", value=float(blame.steps), unit="steps"),
        ),
        cost=Cost(
            ratio=share.ratio,
            low=share.low / 2 if computes else share.low,
            high=share.high,
            ns_per_step=round(share.ratio * blame.period_ns),
            basis="modelled" if computes else "measured",
        ),
        remedies=(_remedy(found.members[first].name, computes=computes),),
        explanation=f"Each of the others waits {format_ns(waiting)} of a step of {format_ns(blame.period_ns)} in its "
        "call, which therefore looks slow; the call of the slowest is the shortest.",
    )


def _remedy(name: str, *, computes: bool) -> Remedy:
    if computes:
        text = f"give {name} as much to compute as the others: the same batch, shapes, settings; else look at its host"
        return Remedy(id="equal-compute", text=text)
    text = (
        f"mend what {name} does between the calls of its steps: its findings say what; if it runs the same program on "
        "the same data, look at its host"
    )
    return Remedy(id="mend-the-straggler", text=text)


def _why(found: Waits, member: int, more: float) -> tuple[str, PipelineStage, tuple[Place, ...]]:
    """What the member does longer than the others (of ``more`` ns in all), the stage, and where."""
    inside = found.inside_beyond_ns(member)
    beyond = found.components_beyond(member)
    if not beyond or max(inside, beyond[0][1]) < MIN_PART * more or inside > beyond[0][1]:
        computes = inside >= MIN_PART * more > 0
        said = f", {format_ns(min(inside, more))} of it computing" if computes else ""
        return said, "forward-backward" if computes else "none", ()
    name, ns = beyond[0]
    view = steps_view.of(found.members[member].open())
    lines = spent_lines.of(view, name) if view is not None else ()
    said = f", {format_ns(min(ns, more))} of it {COMPONENTS[name].word}"
    if lines and lines[0].what:
        said += f" ({lines[0].what})"
    return said, COMPONENTS[name].stage, tuple(line.place for line in lines)


DETECTOR = Detector(
    code="DST001",
    name="straggling-member",
    introduced_stage="training",
    exposed_stage="training",
    needs=frozenset({Signal.MEMBERS}),
    params=Params(),
    detect=detect,
    applies=members.why_not,
)
