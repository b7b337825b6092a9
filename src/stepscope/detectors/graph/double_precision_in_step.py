"""Part of the step is computed in double precision, although the model has single precision.

## What it detects
Ops of the step that make or read `float64` or `complex128` and take a large part of it, in a graph whose trainable
weights are not `float64`.

## Why it matters
NumPy's numbers are `float64` by default, and TensorFlow keeps the type: constants, tables and batches made with NumPy
carry double precision into everything that they touch, until a cast. Twice the bytes are moved, half as many numbers
fit a vector unit, oneDNN has no such kernels, and most GPUs compute them at a 32nd of the speed.

## Evidence
From the graph: the types of tensors and weights. From an op trace: `double_ratio`, share of the steps in such ops.

Measured (bench/cases/37-double-precision-features): TensorFlow 2.21: single precision takes 2.7x less CPU time (63 %
saved); predicted 56 %. TensorFlow 2.15: predicted 56 %.

## Known limits
The gain is modelled: 60 % of the time. If the weights themselves are `float64`, the precision was chosen, and nothing
is reported. Whether results need it (sums of many small numbers, ill-conditioned systems) is unknown.

## Remedy
`astype("float32")` where arrays are made, `tf.constant(x, tf.float32)`, `tf.cast` at the beginning of the step.

## References
TensorFlow guide, "Tensors": conversion of NumPy arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import precision, whole_arrays
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts
    from stepscope.derive.view import SessionView

DOUBLE = frozenset({"float64", "complex128"})
GAIN, LEAST, MOST = 0.6, 0.5, 0.8
"""Shares of the time that single precision saves: half of the bytes, and 0.68 of a product and a cosine together
(measured on the pair above)."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the traced steps that single precision is predicted to save."""
    min_elements: int = 10_000
    """Without a trace: size of an array worth asking about; an unknown dimension may have any size."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding."""
    yield from graph_pattern.price(
        view,
        graph_pattern.whole(_in_single_model),
        params.min_ratio,
        ask=lambda rows: _suspicion(view, rows, params),
        weigh=lambda ops, rows: graph_pattern.Saving(share=ops.of_nodes(rows), part=GAIN, least=LEAST, most=MOST),
        see=lambda ops, rows, saving: _finding(view, ops, rows, saving, params),
    )


def _in_single_model(index: GraphIndex) -> list[int]:
    """Rows of ops that work in double precision; none if the weights do, or there are no weights."""
    weights = whole_arrays.weights(index)
    if not weights or any(weight.dtype in DOUBLE for weight in weights):
        return []
    return precision.working_in(index, DOUBLE)


def _suspicion(view: SessionView, rows: list[int], params: Params) -> str:
    index = view.graphs
    if index is None or not any(_large(index, row, params.min_elements) for row in rows):
        return ""
    return "a single-precision model computes in double precision in places"


def _large(index: GraphIndex, row: int, least: int) -> bool:
    made = [spec for spec in index.table.specs_of(row) if spec.dtype in DOUBLE and spec.shape is not None]
    return any(spec.elements >= least or -1 in (spec.shape or ()) for spec in made)


def _finding(view: SessionView, ops: NodeCosts, rows: list[int], saving: graph_pattern.Saving, params: Params) -> Seen:
    costliest = ops.costliest(rows)
    return Seen(
        title=f"{format_ratio(saving.share.ratio)} of the step is computed in double precision (float64), although "
        "the weights have single precision",
        confidence=0.8,
        where=graph_pattern.places(view, ops.index, costliest),
        evidence=(
            trace_evidence.evidence(ops.trace, "double_ratio", saving.share.ratio, "ratio"),
            trace_evidence.evidence(ops.trace, "saved_ratio", saving.ratio, "ratio", params.min_ratio),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(view, saving.ratio, low=saving.low, high=saving.high, basis="modelled"),
        remedies=(
            Remedy(
                id="single-precision",
                text='make arrays float32 at their source (NumPy makes float64): astype("float32"), '
                "tf.constant(x, tf.float32), or tf.cast at the beginning of the step",
            ),
        ),
        explanation="The graph shows the types of all tensors, the op trace the time of the ops that work on float64.",
    )


DETECTOR = Detector(
    code="GRF009",
    name="double-precision-in-step",
    cause="API: inefficient API usage",
    introduced_stage="data preparation",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
