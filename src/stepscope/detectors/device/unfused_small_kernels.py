"""The step is many short kernels with gaps between them, which a compiler would fuse.

## What it detects
A device that spends a large part of the step between kernels that are already in its queue, because there are hundreds
of short kernels, most of them neither matrix products nor convolutions.

## Why it matters
The device needs one to five microseconds from one kernel to the next, and each reads its input from memory and writes
its output back. When fused, a chain of element-wise ops is one kernel.

## Evidence
From an op trace with a device's work: `gap_ratio`, share of the steps between two kernels of which the second was in
the queue; `kernels_per_step`; `kernel_ns`: median duration; `fusible_ratio`: share of the kernels that are not
products.

## Known limits
Recording kernels lengthens the gaps. The saving is modelled: the gaps of the kernels that can be fused.

## Remedy
`jit_compile=True` in `compile` or `tf.function`; fused layers (fused batch normalisation, `tf.nn.gelu`), larger
batches.

## References
XLA: fusion; HolisticTraceAnalysis, "kernel wait" idle time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import op_places, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps."""
    min_kernels: int = 100
    """Per step: with fewer, look at the single gaps instead."""
    max_kernel_ns: int = 50_000
    """Median: between longer kernels the gaps are a small part."""
    max_gap_ns: int = 20_000
    """Mean: a device takes a few microseconds from one kernel to the next; longer gaps have other causes (kernels that
    the file omits, other streams)."""
    min_fusible_ratio: Ratio = Ratio(0.5)
    """Of the kernels."""


_COMPILER = {"tensorflow": "XLA", "jax": "XLA", "torch": "torch.compile"}
_COMPILED = {
    "tensorflow": "compile the step with XLA: jit_compile=True in compile or tf.function",
    "jax": "put the whole step under one jax.jit",
    "torch": "compile the model: torch.compile",
}


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    kernels = trace.kernels if trace is not None else None
    if trace is None or kernels is None:
        return
    gaps = trace.breakdown.ratio("device-gap")
    per_step = len(kernels.row) / max(1, len(trace.periods))
    median = float(np.median(kernels.dur_ns))
    fusible = 1 - float(kernels.eligible.mean())
    if gaps < params.min_ratio or per_step < params.min_kernels or median > params.max_kernel_ns:
        return
    gap = gaps * trace.periods.mean_ns / per_step
    if fusible < params.min_fusible_ratio or gap > params.max_gap_ns:
        return
    saved = gaps * fusible
    yield Seen(
        title=f"the device is idle for {format_ratio(gaps)} of the step between {per_step:,.0f} kernels a step, most "
        f"of them {format_ns(median)} or shorter: {_COMPILER[trace.framework]} would fuse them",
        confidence=0.8,
        where=op_places.of_rows(view, trace, kernels.row),
        evidence=(
            trace_evidence.evidence(trace, "gap_ratio", gaps, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "kernels_per_step", per_step, "kernels", params.min_kernels),
            trace_evidence.evidence(trace, "kernel_ns", median, "ns", params.max_kernel_ns),
            trace_evidence.evidence(trace, "fusible_ratio", fusible, "ratio", params.min_fusible_ratio),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, saved, low=saved / 2, high=gaps, basis="modelled"),
        remedies=(Remedy(id="jit-compile", text=_COMPILED[trace.framework]),),
        explanation="The kernels were already in the device's queue, so the gaps are the device's own time from one "
        "kernel to the next, not a wait for the host.",
    )


DETECTOR = Detector(
    code="KRN005",
    name="unfused-small-kernels",
    symptom="Processor: abnormal GPU utilization",
    cause="API: not using efficient API",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.DEVICE_TRACE}),
    params=Params(),
    detect=detect,
)
