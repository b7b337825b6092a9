"""Ops that the user's code makes by hand take much of the compiled step: in one function, or on one line.

## What it detects
A function of the user's code whose ops, with those of the functions it calls and with their gradients, take a fifth of
the steps or more, by an op trace; where no single function holds them, the line with most of them. Dense products,
convolutions, layers of libraries and optimizers are left out: a model has to compute them.

## Why it matters
Matrix products and convolutions are what most models have to compute. Ops around them (losses, metrics, augmentation,
features) move each value through memory without computing much with it; they are often needed once instead of in each
step, on less than they get, or could be fused.

## Evidence
`function_ratio`, `line_ratio`: share of the traced steps' time in which the ops of the function or line run, at most
their share of all op time times the compute's share of the steady wall time. `part of line N`: share of the function's
op time that falls on one of its lines. `part of TYPE`: share in ops of a type. `call_ratio`: share of the steady wall
time in compute.

## Known limits
Reported only where no specific finding explains the time. Op times of threads that run at the same time are summed, so
the share is a share of work. Whether the model needs these ops is not known: no saving is claimed, and the finding is
above information only where one function or line below the step's own function takes two fifths of the steps.

## Remedy
Compute once before the training, or in the input pipeline, what does not depend on the weights; compute a metric once
in many steps; let XLA fuse the rest (`jit_compile=True`). Random numbers (Dropout) are new in each step: draw fewer.

## References
TensorFlow guide on XLA; FSE'22 study, inefficient model structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import compute_lines, hot_function
from stepscope.causes.general.hot_function import DENSE
from stepscope.causes.input import random_input
from stepscope.detectors.base import Detector, Seen, Signal, cost_of, severity_of
from stepscope.detectors.remedies import Fact
from stepscope.detectors.shared import general_loss
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.general.compute_lines import ComputeLine
    from stepscope.causes.general.hot_function import HotFunction
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.20)
    """Of the steady wall time: a line with a fifth of the step is worth a look (docs/decisions/0042)."""
    min_other_ratio: Ratio = Ratio(0.50)
    """Of a line's op time in ops that are neither dense products nor an optimizer's updates."""
    min_clear_ratio: Ratio = Ratio(0.40)
    """Of the steady wall time in the ops of one function below the step's own: above information
    (docs/decisions/0057)."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding: the function with the most op time, else the line."""
    compute = view.anatomy.ratio("call")
    function = view.get(hot_function.build)
    if function is not None and function.lines:
        ratio = _step_ratio(view, function.rows, function.ratio * compute)
        if ratio >= params.min_ratio:
            yield _of_function(view, function, ratio, params)
            return
    found = view.get(compute_lines.build)
    wanted = [
        line for line in (found.lines if found is not None else ()) if _other_ratio(line) >= params.min_other_ratio
    ]
    ratio = _step_ratio(view, wanted[0].rows, wanted[0].ratio * compute) if wanted else 0.0
    if ratio >= params.min_ratio:
        yield _of_line(view, wanted[0], ratio, params)


def _step_ratio(view: StepsView, rows: frozenset[int], most: float) -> float:
    """Share of the steps in the ops of some nodes: of the traced steps' time, of which ops may be a small part."""
    ops = view.node_costs
    shown = ops.of_nodes(rows, gradients=True).ratio if ops is not None else 0.0
    return min(shown, most)


def _of_function(view: StepsView, found: HotFunction, ratio: float, params: Params) -> Seen:
    clear = ratio >= params.min_clear_ratio and bool(found.callers)
    top, share = found.lines[0]
    name = found.name or f"line {top.line}"
    part = f"; {format_ratio(share)} of it at line {top.line}" if found.name and share < 1 else ""
    by = f", called by {found.callers[0].function}," if found.callers and found.callers[0].function else ""
    return Seen(
        title=f"the ops of {name}{by} take {format_ratio(ratio)} of the step time ({found.types_text}{part})",
        severity=severity_of(ratio) if clear else "info",
        confidence=general_loss.CONFIDENCE,
        where=(*(place for place, _ in found.lines), *found.callers),
        evidence=(
            Evidence(metric="function_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            _call_ratio(view.anatomy.ratio("call")),
            *(Evidence(metric=f"part of line {p.line}", value=part, unit="ratio") for p, part in found.lines),
            *(Evidence(metric=f"part of {name}", value=part, unit="ratio") for name, part in found.types),
        ),
        cost=cost_of(view, ratio, low=0.0, high=ratio, basis="modelled")
        if clear
        else cost_of(view, 0.0, high=ratio, basis="unknown"),
        remedies=(*_remedies(found), _DRAW_LESS),
        about=_about(found.types),
        explanation="The user's code makes these ops one by one; they move or transform data rather than multiply and "
        "add. Their gradients count with them." + _depends(found),
    )


def _depends(found: HotFunction) -> str:
    return " They do not depend on any weight, only on the batch." if found.reads_weights is False else ""


def _remedies(found: HotFunction) -> tuple[Remedy, ...]:
    """The remedies that fit, the surest first."""
    fuse = Remedy(
        id="fuse-ops", text="let XLA fuse these ops: tf.function(jit_compile=True), compile(jit_compile=True)"
    )
    if any(_of_metric(place.function) for place in (*(line for line, _ in found.lines), *found.callers)):
        text = "compute this metric once an epoch or once in many steps, from what each step adds: it is only shown"
        return (Remedy(id="metric-less-often", text=text), fuse)
    if found.reads_weights is False:
        text = (
            f"take {found.name or 'these lines'} out of the step: into the input pipeline (map, prefetch), which runs "
            "while the step computes, or to before the training if the examples are always the same"
        )
        drawn = (
            f"take {found.name or 'these lines'} into the input pipeline (map, prefetch), which draws and runs while "
            "the step computes"
        )
        return (Remedy(id="out-of-the-step", text=text), Remedy(id="into-the-input", text=drawn), fuse)
    text = (
        f"make {found.name or 'these lines'} compute less: only what is used of the result, once for all that share "
        "it, and with fewer, cheaper ops; or run it less often"
    )
    return (Remedy(id="compute-less", text=text), fuse)


MIN_DRAWING = 0.25
"""Part of the time of some ops in drawing numbers from which they are not the same in two steps, nor faster by XLA."""
_DRAW_LESS = Remedy(
    id="draw-less",
    text="draw fewer random numbers: they are new in each step, so nothing can be kept (one Dropout for several, on "
    "the smaller tensor, or none where validation shows no gain)",
)


def _about(types: Sequence[tuple[str, float]]) -> frozenset[Fact]:
    """Whether these ops make random numbers with a large part of their time."""
    drawing = sum(share for name, share in types if random_input.draws(name))
    return frozenset({Fact.DRAWS}) if drawing >= MIN_DRAWING else frozenset()


def _of_metric(function: str) -> bool:
    """Whether a function is a metric's by Keras' names."""
    return function.rpartition(".")[2] in {"update_state", "compute_metrics"}


def _of_line(view: StepsView, top: ComputeLine, ratio: float, params: Params) -> Seen:
    function = f" of {top.place.function}" if top.place.function not in {"", "<module>"} else ""
    return Seen(
        title=f"the ops of line {top.place.line}{function} take {format_ratio(ratio)} of the step time, most of it in "
        f"{top.types_text}",
        severity="info",
        confidence=general_loss.CONFIDENCE,
        where=(top.place,),
        evidence=(
            Evidence(metric="line_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            _call_ratio(view.anatomy.ratio("call")),
            *(Evidence(metric=f"part of {name}", value=part, unit="ratio") for name, part in top.types),
        ),
        cost=cost_of(view, 0.0, high=ratio, basis="unknown"),
        remedies=(
            Remedy(
                id="out-of-the-step",
                text="compute what does not depend on the weights once before the training, or in the input pipeline",
            ),
            Remedy(
                id="fuse-ops", text="let XLA fuse the rest: tf.function(jit_compile=True), compile(jit_compile=True)"
            ),
            _DRAW_LESS,
        ),
        about=_about(top.types),
        explanation="These ops move or transform data rather than multiply and add; the line's gradients count with "
        "it.",
    )


def _call_ratio(compute: float) -> Evidence:
    return Evidence(metric="call_ratio", value=compute, unit="ratio", refs=("component:call",))


def _other_ratio(line: ComputeLine) -> float:
    """Share of the line's op time that is in neither dense products, by its main types, nor updates."""
    dense = sum(part for name, part in line.types if any(word in name.lower() for word in DENSE))
    return 1.0 - max(dense, line.updates_ratio)


DETECTOR = Detector(
    code="GEN001",
    name="costly-compute-line",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.OP_TRACE, Signal.NODES}),
    params=Params(),
    detect=detect,
)
