"""CPU or GPU utilisation dips periodically.

## What it detects
At regular intervals, for a second or more, the CPU (or GPU) of the job does much less than usual, and fewer steps are
made. The detector names what the step's thread does in those seconds beyond its usual work.

## Why it matters
A periodic dip has a periodic cause: a checkpoint, a summary, a validation, a refill of a buffer, a job of another
process. The mean utilisation hides it.

## Evidence
`dips`, `period_s` and `period_spread` (standard deviation over mean of the distances; near 1 for random dips); `usual`
and `within`: utilisation outside and inside the dips; `dip_ratio`: share of the time; `lost_ratio`: share of the time
lost by the steps that were not made.

## Known limits
Samples come once a second: a shorter dip is blurred. If another detector reports the same seconds (callbacks, saves,
evaluations, periodic stalls, other processes), the cost is counted there, and the dip is only information; also if the
steps continue as fast as before.

## Remedy
What the title names: do it less often, in the background, or not at all.

## References
Training-pipeline analysis (Rand 2020), utilisation dips with a period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.causes.system import stalls, utilisation_dips
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.model.report.components import COMPONENTS, Trait, components_with, stage_in_step
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.utilisation_dips import Dips
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_lost_ratio: Ratio = Ratio(0.03)
    """Of the time: the least that a report calls low. Below it the dips are information."""
    min_others_cores: float = 0.3
    """Extra cores of other processes in dips: if the steps then compute more slowly, the others are the cause (CFG001);
    if the steps do something else, the others only use what is left."""
    limits: utilisation_dips.DipLimits = field(default_factory=utilisation_dips.DipLimits)
    """What a dip is, and when dips are periodic."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding: the GPU's if there is one."""
    found = utilisation_dips.build(view, params.limits)[-1:]
    for dip in found:
        yield _finding(view, dip, params)


def _finding(view: StepsView, dip: Dips, params: Params) -> Seen:
    by_others = dip.others_cores >= params.min_others_cores and dip.component in {"", "call"}
    told = by_others or dip.component in components_with(Trait.DIP_EXPLAINED) or bool(view.get(stalls.build))
    counted = dip.lost_ratio >= params.min_lost_ratio and not told
    ratio = dip.lost_ratio if counted else 0.0
    then = COMPONENTS[dip.component].runs if dip.component else ""
    runs = "other processes run" if by_others else then
    what = f" ({runs})" if runs else ""
    named = f": meanwhile {runs}" if runs else "; what runs meanwhile was not seen"
    unit = "cores" if dip.what == "CPU" else "of the device"
    places = [s.culprit for s in view.hot_spots(dip.component)][:1] if dip.component == "other-python" else []
    return Seen(
        title=f"{dip.what} utilisation dips every {dip.period_s:.1f} s, from {dip.usual:.2g} to {dip.within:.2g} {unit}"
        f"{named}; {format_ratio(dip.lost_ratio)} of the time is lost",
        confidence=0.7,
        symptom="Processor: abnormal CPU utilization" if dip.what == "CPU" else "Processor: abnormal GPU utilization",
        cause="System: scheduling" if by_others else "unknown",
        pipeline_stage=stage_in_step(dip.component),
        where=tuple(view.place(p.file, p.line, function=p.function) for p in places),
        evidence=(
            Evidence(metric="lost_ratio", value=dip.lost_ratio, unit="ratio", threshold=params.min_lost_ratio),
            Evidence(metric="dip_ratio", value=dip.share_ratio, unit="ratio"),
            Evidence(metric="dips", value=dip.count, unit="count"),
            Evidence(metric="period_s", value=dip.period_s, unit="s"),
            Evidence(metric="period_spread", value=dip.spread, unit="ratio", threshold=params.limits.max_spread),
            Evidence(metric="usual", value=dip.usual, unit="cores" if dip.what == "CPU" else "ratio"),
            Evidence(metric="within", value=dip.within, unit="cores" if dip.what == "CPU" else "ratio"),
        ),
        cost=cost_of(view, ratio, low=0.5 * ratio, high=1.2 * ratio, basis="modelled", by_time=True),
        remedies=(
            Remedy(
                id="less-often",
                text=f"find out what happens every {dip.period_s:.1f} s{what}, and do it less often or while steps run",
            ),
        ),
        explanation="Seconds with little computation are compared with the others. "
        + ("" if counted else "Another detector counts this cost, or the steps continue as fast as before."),
    )


DETECTOR = Detector(
    code="UTL001",
    name="utilisation-dips",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS, Signal.RESOURCES}),
    params=Params(),
    detect=detect,
)
