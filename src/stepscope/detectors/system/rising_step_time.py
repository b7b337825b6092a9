"""Steps take longer and longer, because one part of them grows with every step.

## What it detects
A part of the step - Python of the loop, a callback, saving, garbage collection, user code inside the calls - whose time
per step rises steadily over the whole run, while the rest of the step does not.

## Why it matters
A history that is traversed in every step, a log that is redrawn, objects that are kept: what is cheap in the first
minute takes most of the step after a day. An average over a short run does not show it.

## Evidence
`rising_ratio`: share of the steady wall time above what the part took at the start. `growth`: its time at the end over
that at the start, by a robust line (Theil-Sen) through the medians of 40 bins, with an interval that allows for
correlated neighbouring bins. `rest_growth`: the same for everything else in the step. `samples_on_code`.

## Known limits
A slower machine, or steps that grow by design (longer sequences, larger batches), raises the other parts too and is not
a finding; nor is a thread that waits ever longer for a CPU, which is taken out of all parts. A compiled step that alone
gets slower is undecided: whether its input grew is not recorded. Input that gets slower is reported by the input's
detectors.

## Remedy
Keep a running value instead of the history, bound the history (`collections.deque(maxlen=N)`), or traverse it only
every N steps.

## References
Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 1968; Yue and Wang, 2004; FSE'22
study, symptom "increasing time over time".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.system import contention, rising_step_time
from stepscope.derive.steps.anatomy import NAMED_BY
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import loop_python
from stepscope.model.report.components import COMPONENTS, Trait, components_with, stage_in_step
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.rising_step_time import Rise
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Of steady wall time, above the start: the least that a report calls low."""
    min_growth: float = 1.5
    """End over start, also relative to the rest of the step: allocators and caches warm up by less."""
    max_lost_ratio: Ratio = Ratio(0.15)
    """Of the CPUs: if others use the machine this much, a call alone that gets slower says nothing about the job."""
    min_samples: int = 5
    """On the function, for parts that only samples can divide."""


_SKIPPED = components_with(Trait.RISE_EXPLAINED)


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield one finding per rising part that can be named, or undecided for a call that rises alone."""
    steps = view.steps
    mean = steps.steady_ns / steps.steady_count
    others = view.get(contention.build)
    starved = others is not None and others.lost_ratio >= params.max_lost_ratio
    for rise in view.get(rising_step_time.build):
        ratio = rise.excess_ns / mean
        enough = ratio >= params.min_ratio and rise.factor >= params.min_growth * max(1.0, rise.rest_factor)
        if not enough or rise.component in _SKIPPED:
            continue
        named = rise.name is not None if rise.component in NAMED_BY else rise.samples >= params.min_samples
        if named:
            yield _finding(view, rise, ratio, params)
        elif rise.component == "call" and not starved:
            yield Undecided(
                missing=Signal.SIZES,
                hint=f"the compiled step rises to {rise.factor:.2g}x its time at the start; whether its input grows "
                "too is not recorded",
            )


def _finding(view: StepsView, rise: Rise, ratio: float, params: Params) -> Seen:
    steps = view.steps
    count = steps.count
    low, high = (max(0.0, bound / rise.trend.slope) for bound in (rise.trend.low, rise.trend.high))
    who = _who(view, rise)
    return Seen(
        title=f"{who} takes ever more time, {format_ns(rise.trend.last)} a step after {count:,} steps: "
        f"{format_ratio(ratio)} of the time",
        confidence=0.9,
        cause=COMPONENTS[rise.component].cause,
        pipeline_stage=stage_in_step(rise.component),
        where=_places(view, rise),
        evidence=(
            Evidence(
                metric="rising_ratio",
                value=ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(f"component:{rise.component}",),
            ),
            Evidence(metric="growth", value=rise.factor, unit="times", threshold=params.min_growth),
            Evidence(metric="rest_growth", value=rise.rest_factor, unit="times"),
            Evidence(metric="ns_per_step_per_step", value=rise.trend.slope, unit="ns"),
            Evidence(metric="samples_on_code", value=rise.samples, unit="samples"),
        ),
        cost=cost_of(view, ratio, low=ratio * low, high=ratio * min(high, 2.0)),
        remedies=_remedies(view, rise, who),
        explanation="The part grows in every quarter of the run while the rest of the step does not: it works on "
        "something that every step makes larger. At this rate it keeps growing.",
    )


def _who(view: StepsView, rise: Rise) -> str:
    if rise.component == "gc":
        return "the garbage collection"
    if rise.component in NAMED_BY and rise.name is not None:
        text = rise.name.text
        return f"the callback {text}" if rise.component == "callbacks" else text
    return loop_python.who(view, rise.spot) if rise.spot is not None else COMPONENTS[rise.component].word


def _places(view: StepsView, rise: Rise) -> tuple[Place, ...]:
    places = []
    name, spot = rise.name, rise.spot
    if spot is not None and rise.component != "gc":
        places.append(view.place(spot.file, spot.line, function=spot.function))
    if name is not None and name.own and name.file:
        places.append(view.place(name.file, name.line, name.end_line, name.text))
    if name is not None and name.call_file:
        places.append(view.place(name.call_file, name.call_line, function=name.call_function))
    if view.loop is not None and view.call_line is not None:
        places.append(view.place(view.loop[0], view.call_line, function=view.loop[1]))
    return tuple(dict.fromkeys(places))


def _remedies(view: StepsView, rise: Rise, who: str) -> tuple[Remedy, ...]:
    if rise.component == "gc":
        return (
            Remedy(
                id="keep-fewer-objects",
                text="keep fewer Python objects from step to step: floats instead of tensors, arrays instead of lists",
            ),
            Remedy(id="freeze-objects", text="or exempt long-lived objects: gc.freeze() before the loop"),
        )
    in_loop = rise.component not in NAMED_BY and rise.spot is not None and loop_python.is_loop(view, rise.spot)
    walks = "traverse" if in_loop and "lines" in who else "traverses"
    keep = Remedy(
        id="keep-running-value",
        text=f"keep a running value instead of the history that {who} {walks}, or bound it (deque(maxlen=N))",
    )
    return (keep,) if in_loop else (keep, Remedy(id="do-it-less-often", text=f"or run {who} every N steps"))


DETECTOR = Detector(
    code="TRD001",
    name="rising-step-time",
    symptom="Time: increasing time over time",
    introduced_stage="training",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES}),
    params=Params(),
    detect=detect,
)
