"""Tensors are transposed between layouts in every step.

## What it detects
Transposes that change the order of channels for convolutions: those that TensorFlow's layout optimiser put into the
graph, and the conversion kernels of cuDNN.

## Why it matters
A transpose computes nothing and moves every byte twice. They appear if parts of a model use channels first and others
channels last, or if an op exists in one layout only, so that the optimiser cannot cancel them.

## Evidence
From an op trace: `transpose_ratio`, share of the steps in such ops on the device (on the host if there is none);
`transposes_per_step`.

## Known limits
Transposes that are part of the model itself (attention) are not counted.

## Remedy
One layout for the whole model: `data_format="channels_last"` (and with mixed precision on tensor cores), no
`tf.transpose` around convolutions.

## References
TensorFlow: generic_layout_optimizer.cc; NVIDIA: tensor layouts of convolutional layers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work
from stepscope.derive.optrace.host.activity import Activity
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import op_places, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.tables.records import I64


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of the traced steps."""


_ONE = {
    "tensorflow": 'data_format="channels_last"',
    "jax": 'dimension_numbers=("NHWC", "HWIO", "NHWC") for every convolution',
    "torch": "model.to(memory_format=torch.channels_last), and its inputs",
}
_OPTIMISER = "LayoutOptimizer"
_KERNELS = re.compile(r"(?i)nchwToNhwc|nhwcToNchw|nchwTo4|SwapDimension\w*Tensor")
"""cuDNN's conversions and TensorFlow's transposing kernels for images."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None:
        return
    rows = _transposes(trace)
    events = trace.trace.events
    within = intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], trace.periods.windows)
    rows, spent = rows[within > 0], int(within.sum())
    wall = float(trace.periods.dur_ns.sum())
    ratio = spent / wall if wall else 0.0
    if ratio < params.min_ratio:
        return
    per_step = len(rows) / max(1, len(trace.periods))
    yield Seen(
        title=f"layout transposes take {format_ratio(ratio)} of the step, {per_step:.0f} a step: parts of the model "
        "use channels first, others channels last",
        confidence=0.85,
        where=op_places.of_rows(view, trace, rows),
        evidence=(
            trace_evidence.evidence(trace, "transpose_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "transposes_per_step", per_step, "ops"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio, low=ratio / 2),
        remedies=(Remedy(id="one-layout", text=f"use one layout for the whole model: {_ONE[trace.framework]}"),),
        explanation="The framework's layout optimiser or cuDNN inserted the transposes, not the model.",
    )


def _transposes(trace: OpView) -> I64:
    """Rows of the transposes where the step's ops run: on its device, else on the host."""
    strings, names = trace.trace.strings, trace.trace.names()
    on_host = trace.device < 0
    rows = trace.domain.rows(Activity.OP) if on_host else device_work.rows(trace.trace, trace.device)
    optimised = np.array([_OPTIMISER in name for name, _ in trace.labels.ops] + [False], np.bool_)
    conversions = np.array([_KERNELS.search(text) is not None for text in strings], np.bool_)
    wanted: I64 = rows[optimised[trace.labels.index[rows]] | conversions[names[rows]]]
    return wanted


DETECTOR = Detector(
    code="LAY001",
    name="layout-transposes",
    cause="Model: improper model parameter",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
)
