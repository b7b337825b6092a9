"""A model of ONNX Runtime whose weights are inputs of its graph too: nothing is folded, fused or packed.

## What it detects
Sessions of which weights (initializers) are listed among the graph's inputs, so that each run may replace them, if
their runs take a tenth of the time or more.

## Why it matters
ONNX Runtime has to take such weights as unknown: it folds no constants, fuses no convolution with its normalization,
and packs no weights ahead, whatever level of optimization is asked for. It warns of each of them once, where warnings
are on.

## Evidence
`replaceable`: their number, by the session. `run_ratio`: share of the steady time in its runs.

## Known limits
The saving is that of small models (docs/benchmarks/onnx-weights.md: 23 to 48 % of a run on one thread), not this one's.
Programs that do replace weights in runs need them so.

## Remedy
Leave the initializers out of `graph.input`: with the package onnx, load the model, remove these entries and save it; or
export it again with `keep_initializers_as_inputs=False`.

## References
ONNX Runtime documentation, "Graph optimizations"; ONNX IR version 4, initializers without inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.model.log.events import InferenceSession
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps_view import StepsView

SAVED = (0.15, 0.33, 0.55)
"""Part of the runs' time that constant weights save: at least, usually, at most. Measured: 0.23 to 0.48."""
REMEDY = Remedy(
    id="constant-weights",
    text="leave the weights out of graph.input: load the model with onnx, remove their entries there and save it, or "
    "export it with keep_initializers_as_inputs=False",
)


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the steady time, in runs of the model."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield one finding for each such model."""
    made = {one.model: one for one in view.worker.all(InferenceSession) if one.replaceable}
    for model, one in made.items():
        rows = [row for row in view.named_times(Kind.INFERENCE) if row.name.text == model]
        ratio = min(1.0, sum(row.total_ns for row in rows) / view.steps.steady_ns)
        if ratio >= params.min_ratio:
            yield _finding(view, one, rows[0], ratio, params)


def _finding(view: StepsView, one: InferenceSession, row: NamedTime, ratio: float, params: Params) -> Seen:
    """``row``: of the line with most of the runs' time."""
    least, usual, most = (part * ratio for part in SAVED)
    return Seen(
        title=f"{one.replaceable} weights of the model are inputs too, so that ONNX Runtime fuses and packs nothing: "
        f"its runs take {format_ratio(ratio)} of the time",
        confidence=0.8,
        where=(
            view.place(one.file, one.line, function=one.function),
            view.place(row.name.call_file, row.name.call_line, function=row.name.call_function),
        ),
        evidence=(
            Evidence(
                metric="run_ratio",
                value=ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(f"name:{row.name.id}",),
            ),
            Evidence(metric="replaceable", value=one.replaceable, unit="tensors"),
        ),
        cost=cost_of(view, usual, low=least, high=most, basis="modelled"),
        remedies=(REMEDY,),
        explanation="A run may replace them, so they are no constants, whatever level of optimization is asked for.",
    )


DETECTOR = Detector(
    code="GRF025",
    name="weights-as-inputs",
    cause="Model: improper model parameter",
    introduced_stage="model building",
    exposed_stage="prediction",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"onnxruntime"}),
    params=Params(),
    detect=detect,
)
