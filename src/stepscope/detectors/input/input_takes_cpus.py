"""The input is ready in time, but its threads take the CPUs that the steps want.

## What it detects
A tf.data pipeline whose threads take three tenths or more of the CPU time of all CPUs that the job may use, where these
are full: its threads run on, or wait for, more CPUs than there are.

## Why it matters
The steps hardly wait for a batch, so the input looks free. But ops of the step run slower, by as much as the input's
threads take: on few CPUs, overlapping work is no free work.

## Evidence
`input_cpu_ratio`: the input's part of the CPUs' time, by the clocks of its stages in tf.data's model as they are while
the steps are fast, and no more than the process used beyond such steps; `wanted_cpus`, `available_cpus`; `part of
STAGE`: of the input's CPU time.

## Known limits
tf.data's clocks are on the wall; they do not show the stages above a cache that is discarded in each pass. What less
input saves is modelled: all of its CPU time at most. Not reported where other processes take CPUs, or a device
computes.

## Remedy
Less work in the input: work on whole batches instead of single elements, `cache()` after what is the same in each
pass, cheaper types and formats, or the work done once before the job; or more CPUs.

## References
TensorFlow guide "Better performance with the tf.data API"; training-pipeline analysis (Rand 2020): more CPU cores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import function_lines, input_cpu
from stepscope.causes.input.input_work import PASSING_ON
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.input.parts import cut_cache, input_means
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.input_cpu import InputCpu
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_cpu_ratio: Ratio = Ratio(0.30)
    """Of the CPUs' time. Measured on one CPU: at most 0.11 in clean programs (bench/cases and strangers)."""


SAVED = 0.8
"""Part of the input's CPU time that less input saves: batches have to be handed over all the same. Source: windows of
a series, made one by one and as whole batches (docs/benchmarks/strangers.md): 0.85."""
LEAST = 0.4
MANY = 1.5
"""Elements of a stage for each batch from which it works on single elements."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(input_cpu.build)
    if found is None or found.ratio < params.min_cpu_ratio:
        return
    places = _places(view, found)
    cut = cut_cache.above(view, view.pipeline.datasets)
    at = f" ({places[0].file}:{places[0].line})" if places else ""
    mostly = "" if found.stage.family in PASSING_ON else f", mostly its {found.stage.name} stage{at},"
    title = (
        f"the input pipeline takes {format_ratio(found.ratio)} of the job's CPUs{mostly} from the steps: "
        f"{found.wanted:.1f} CPUs are wanted, {found.available:.0f} available"
    )
    lines = function_lines.of_map(view, found.stage)
    title += function_lines.said(lines)
    places = (*places, *(one.place for one in lines))
    if cut is not None:
        title += f"; the {cut_cache.WHY}"
        places = (*places, *cut_cache.places(view, cut))
    yield Seen(
        title=title,
        confidence=0.7,
        where=tuple(dict.fromkeys(places)),
        evidence=(
            Evidence(
                metric="input_cpu_ratio",
                value=found.ratio,
                unit="ratio",
                threshold=params.min_cpu_ratio,
                refs=("component:input-wait",),
            ),
            Evidence(metric="wanted_cpus", value=found.wanted, unit="cpus"),
            Evidence(metric="available_cpus", value=found.available, unit="cpus"),
            Evidence(metric=f"part of {found.stage.name}", value=found.stage_ratio, unit="ratio"),
        ),
        cost=cost_of(view, SAVED * found.ratio, low=LEAST * found.ratio, high=found.ratio, basis="modelled"),
        remedies=(
            *((cut_cache.REMEDY,) if cut is not None else ()),
            *input_means.in_order(view, _remedies(found), maps="Map" in found.stage.name),
        ),
        explanation="The batches are ready in time, because their threads run while the step does. On CPUs that are "
        "full, the step runs slower by as much.",
    )


def _places(view: StepsView, found: InputCpu) -> tuple[Place, ...]:
    made = found.stage.datasets or tuple(d for d in view.pipeline.datasets if d.file)[:1]
    places = [p for d in made if (p := view.dataset_place(d)) is not None]
    places += [view.place(d.fn_file, d.fn_line, d.fn_end_line, d.fn_name) for d in made if d.fn_file and d.fn_line]
    return tuple(dict.fromkeys(places))


def _remedies(found: InputCpu) -> tuple[Remedy, ...]:
    less = Remedy(
        id="cheaper-input",
        text="give the input less work: cache() after what is the same in each pass, do it once before the job, or in "
        "cheaper types",
    )
    if found.stage.elements <= MANY:
        return (less,)
    text = (
        f"work on whole batches: {found.stage.elements:,.0f} calls of the {found.stage.name} stage make one; "
        "gather or map a batch of indices or records at once"
    )
    return Remedy(id="batch-before-map", text=text), less


DETECTOR = Detector(
    code="INP012",
    name="input-takes-cpus",
    cause="Data: inefficient data preprocessing",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tf.data"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"INP001", "INP004", "INP005", "INP006", "INP009", "INP010"}),
)
