"""The step computes in half precision on a CPU.

## What it detects
Ops of a step on the CPU that compute with `float16`, including products or convolutions, and take a large part of it: a
mixed-precision program, written for a GPU, that runs without one.

## Why it matters
TensorFlow's CPU kernels compute `float16` number by number, by converting each to single precision and back. What
halves the time on a GPU multiplies it here.

## Evidence
From the graph: types. From an op trace without a device's work: `half_ratio`, share of the steps in such ops.

Measured (bench/cases/72-half-precision-on-cpu, a CPU with instructions for float16): 47 times the time of single
precision on TensorFlow 2.21; dense layers of 512 took 160 times as long, and in `bfloat16` 1.25 times.

## Known limits
The gain is modelled. Whether a CPU and a build of TensorFlow have native kernels for `float16` (AMX-FP16) is not
checked. Tables and batches that are only stored in it are not included. Types are known only if the graph was read, so
an eager step is not seen. `bfloat16`, for which many CPUs have instructions, is not included either.

## Remedy
`keras.mixed_precision.set_global_policy("float32")` if there is no GPU, or run the job on one.

## References
TensorFlow guide "Mixed precision": float16 is for GPUs of compute capability 7.0 and later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import precision
from stepscope.causes.graph.repeated_forward_pass import HEAVY
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts
    from stepscope.derive.view import SessionView

HALF = frozenset({"float16"})
MOVES = frozenset(
    {
        *("Cast", "Concat", "ConcatV2", "ExpandDims", "Gather", "GatherV2", "Identity", "IdentityN", "IteratorGetNext"),
        *("Pack", "Pad", "PadV2", "ReadVariableOp", "Reshape", "ResourceGather", "Slice", "Split", "SplitV", "Squeeze"),
        *("StridedSlice", "Tile", "Transpose", "Unpack"),
    }
)
"""Ops that copy or convert numbers and compute none: as fast in half precision."""
GAIN, LEAST, MOST = 0.98, 0.9, 0.995
"""Shares of the time that single precision saves. Measured: 0.98 of convolutions, 0.994 of products."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the traced steps that single precision is predicted to save."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is not None and trace.launches is not None:
        return
    yield from graph_pattern.price(
        view,
        graph_pattern.whole(_emulated),
        params.min_ratio,
        ask=lambda _: "the step computes in half precision, perhaps on a CPU",
        weigh=lambda ops, rows: graph_pattern.Saving(share=ops.of_nodes(rows), part=GAIN, least=LEAST, most=MOST),
        see=lambda ops, rows, saving: _finding(view, ops, rows, saving, params),
    )


def _emulated(index: GraphIndex) -> list[int]:
    """Rows of ops that compute; none without products, which may run under the name of the op fused to them."""
    rows = [row for row in precision.working_in(index, HALF) if index.table.type_of(row) not in MOVES]
    return rows if any(index.table.type_of(row) in HEAVY for row in rows) else []


def _finding(view: SessionView, ops: NodeCosts, rows: list[int], saving: graph_pattern.Saving, params: Params) -> Seen:
    return Seen(
        title=f"{format_ratio(saving.share.ratio)} of the step is computed in half precision (float16) on a CPU, "
        "which has to emulate it",
        confidence=0.9,
        where=graph_pattern.places(view, ops.index, ops.costliest(rows)),
        evidence=(
            trace_evidence.evidence(ops.trace, "half_ratio", saving.share.ratio, "ratio"),
            trace_evidence.evidence(ops.trace, "saved_ratio", saving.ratio, "ratio", params.min_ratio),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(view, saving.ratio, low=saving.low, high=saving.high, basis="modelled"),
        remedies=(
            Remedy(
                id="single-precision",
                text="compute in single precision if there is no GPU: "
                'keras.mixed_precision.set_global_policy("float32"), or tf.float32 where float16 is requested',
            ),
        ),
        explanation="The graph shows the types of all tensors; the op trace shows that the ops on float16 run on the "
        "CPU, and their time.",
    )


DETECTOR = Detector(
    code="GRF015",
    name="half-precision-on-cpu",
    cause="Hardware: hardware and code mismatch",
    introduced_stage="environment setting",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
