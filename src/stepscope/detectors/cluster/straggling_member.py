"""One member of a synchronous job makes all others wait, step after step.

## What it detects
A worker, or a minority of them, that does more alone, between two exchanges, than the others in nearly every step: it
reads input, runs callbacks or Python, or computes longer. All leave the exchange together, so all wait for it.

## Why it matters
A synchronous step lasts as long as its slowest member. The others look slow where they are not: their call of the step
lasts longest, because they wait in it, and that of the culprit is the shortest.

## Evidence
`own_ns` and `others_own_ns`: from the end of one call to the start of the next, by each member's own clock, so that
differences between clocks say nothing false. `blame_ns`: the median step's excess over the median of the others.
`last_ratio`: share of the steps in which its own time was the longest. `waits_ns`: what each of the others waits.
`common_steps`: steps of all members that were compared. Of imported files of all ranks `own_ns` is the step without
its exchanges, where no op ran meanwhile, and of what one does longer only what the others waited for counts.

## Known limits
Work inside the compiled step is seen where op traces of all members show it, and only large differences are then
counted; otherwise a member that computes longer looks like slow transfer. Members without a barrier (asynchronous
training with parameter servers) are not compared. Steps of members are paired by when they end, or by their rhythm
where clocks are not known. Imported files hold few steps: two are compared, and of fewer than five confidence is lower.
Imported files of TensorFlow and JAX say no rank: those of several hosts that were recorded at one time are taken for
one job's. Stages of a pipeline are compared as if all were to do the same work.

## Remedy
Mend what that member does between its calls: its own findings say what. If it does the same as the others, look at its
host.

## References
Delay costs of wait states (Boehme et al., TOPC 2016); what-if analysis of stragglers (arXiv 2505.05713).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.cluster import members, stragglers, traced_ranks, waits
from stepscope.causes.general import spent_lines
from stepscope.derive import steps_view
from stepscope.derive.cluster import blame as of_members
from stepscope.derive.optrace.steps.step_parts import PARTS
from stepscope.detectors.base import Detector, Seen, Signal, Undecided
from stepscope.model.report.components import COMPONENTS
from stepscope.tables.findings import Cost, Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.cluster.traced_ranks import ComparedRanks, TracedRanks
    from stepscope.causes.cluster.waits import Waits
    from stepscope.derive.cluster.blame import Blame, Share
    from stepscope.derive.view import SessionView
    from stepscope.tables.findings import Basis, PipelineStage
    from stepscope.tables.place import Place

MOST_NAMES = 3
"""Most stragglers that the title names."""
MIN_PART = 0.1
"""Share of what a straggler does longer from which the title says what it is."""
FEW_TRACED = 5
"""Steps of imported files below which there is less confidence."""
COMPUTING = frozenset(members.COMPUTING)


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = stragglers.MIN_RATIO
    """Excess of the median step, as a share of the period."""
    spreads: float = stragglers.SPREADS
    """It must be so many times the usual deviation of the member's own time."""
    min_last: Ratio = stragglers.MIN_LAST
    """Share of the steps in which one of them must be the slowest."""
    max_group: Ratio = stragglers.MAX_GROUP
    """Share of the members that can be called stragglers; two of three are not."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    ranks = view.get(traced_ranks.build)
    if ranks is not None:
        yield from _of_files(ranks, params)
        return
    found = view.get(waits.build)
    if found is None or found.blame is None:
        return
    group = _persistent(found.blame, params)
    if group and not (len(group) == 1 and found.batch_explains(group[0])):  # said by DST003
        yield _finding(found, found.blame, group, params)


def _persistent(blame: Blame, params: Params) -> list[int]:
    return stragglers.persistent(
        blame,
        min_ratio=params.min_ratio,
        spreads=params.spreads,
        min_last=params.min_last,
        max_group=params.max_group,
    )


def _finding(found: Waits, blame: Blame, group: list[int], params: Params) -> Seen:
    first = group[0]
    share = blame.gain[first]
    if len(group) > 1:
        share = of_members.gain_of(found.calls, found.pairing, group, found.inside_ns)
    names = [found.members[j].name for j in group]
    more = float(blame.blame_median_ns[first])
    what, stage, where = _why(found, first, more)
    computes = found.inside_beyond_ns(first) > more / 2
    return _seen(
        names,
        blame,
        group,
        share,
        params,
        what=what,
        where=where,
        stage=stage,
        confidence=0.9 if found.clocks[first] is not None else 0.8,
        low=share.low / 2 if computes else share.low,
        basis="modelled" if computes else "measured",
        remedy=_remedy(names[0], computes=computes),
        waited="its call, which therefore looks slow; the call",
    )


def _of_files(ranks: TracedRanks, params: Params) -> Iterator[Seen | Undecided]:
    """The same of imported recordings of the ranks."""
    found = ranks.compared
    if found is None:
        yield Undecided(missing=Signal.RANKS, hint=ranks.text)
        return
    if found.blame.steps < traced_ranks.MIN_STEPS:
        yield Undecided(missing=Signal.RANKS, hint="the files have one step in common; two are compared")
        return
    group = _persistent(found.blame, params)
    share = found.gain_of(group) if group else None
    if share is not None and share.low >= params.min_ratio:
        yield _of_ranks(found, group, share, params)


def _of_ranks(found: ComparedRanks, group: list[int], share: Share, params: Params) -> Seen:
    blame = found.blame
    more = float(blame.blame_median_ns[group[0]])
    part, ns = found.parts_beyond(group[0])[0]
    computes = part in COMPUTING
    stage: PipelineStage = "preprocessing" if part == "input-wait" else "forward-backward" if computes else "none"
    name = found.ranks[group[0]].name
    return _seen(
        [found.ranks[j].name for j in group],
        blame,
        group,
        share,
        params,
        what=f", {format_ns(min(ns, more))} of it {PARTS[part]}" if ns >= MIN_PART * more else "",
        where=(),
        stage=stage,
        confidence=0.85 if blame.steps >= FEW_TRACED else 0.6,
        low=share.low,
        basis="modelled",
        remedy=_remedy(name, computes=computes, between="the exchanges"),
        waited="the exchange, which therefore looks slow; that",
    )


def _seen(
    names: Sequence[str],
    blame: Blame,
    group: list[int],
    share: Share,
    params: Params,
    *,
    what: str,
    where: tuple[Place, ...],
    stage: PipelineStage,
    confidence: float,
    low: float,
    basis: Basis,
    remedy: Remedy,
    waited: str,
) -> Seen:
    first = group[0]
    others = [j for j in range(len(blame.own_ns)) if j not in group and np.isfinite(blame.own_ns[j])]
    more, waiting = float(blame.blame_median_ns[first]), float(blame.waits_ns[others].mean())
    who = ", ".join(names[:MOST_NAMES]) + (" and others" if len(names) > MOST_NAMES else "")
    verb = "holds" if len(group) == 1 else "hold"
    return Seen(
        title=f"{who} {verb} the other{'s' if len(others) > 1 else ''} back: {format_ns(more)} more in each step"
        f"{what}; without that, a step takes {format_ratio(share.ratio)} less",
        confidence=confidence,
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
            low=low,
            high=share.high,
            ns_per_step=round(share.ratio * blame.period_ns),
            basis=basis,
        ),
        remedies=(remedy,),
        explanation=f"Each of the others waits {format_ns(waiting)} of a step of {format_ns(blame.period_ns)} in "
        f"{waited} of the slowest is the shortest.",
    )


def _remedy(name: str, *, computes: bool, between: str = "the calls of its steps") -> Remedy:
    if computes:
        text = f"give {name} as much to compute as the others: the same batch, shapes, settings; else look at its host"
        return Remedy(id="equal-compute", text=text)
    text = (
        f"fix what {name} does between {between}: its findings say what; if it runs the same program on "
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
    instead=frozenset({Signal.RANKS}),
    params=Params(),
    detect=detect,
    applies=members.why_not,
)
