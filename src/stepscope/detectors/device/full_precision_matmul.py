"""Matrix products and convolutions run in 32 bits on a device with tensor cores.

## What it detects
Kernels of matrix products and convolutions that use neither tensor cores nor 16-bit numbers, on a GPU with tensor
cores, for a large part of the step.

## Why it matters
Tensor cores run such kernels two to eight times as fast in 16 bits, and half of the bytes are moved.

## Evidence
From an op trace with a device's work: `full_precision_ratio`, share of the steps in such kernels; `tensor_core_ratio`,
share in kernels with tensor cores; `capability`: major compute capability.

## Known limits
Kernels are recognised by their names (884, 1688, hmma, xmma ...). The gain is modelled: half of the time, between a
third and four fifths. Mixed precision changes numbers; a loss scale may be needed.

## Remedy
`keras.mixed_precision.set_global_policy("mixed_float16")` (or bfloat16 from Ampere on); layer sizes in multiples of 8.

## References
NVIDIA: training with mixed precision; xprof's kernel statistics, which recognise tensor cores in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import op_places, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.3)
    """Of the traced steps: below it, doubling the speed gains little."""


GAIN, LEAST, MOST = 0.5, 0.33, 0.8
"""Shares of such kernels' time that mixed precision saves. Source: NVIDIA's mixed-precision guide, 1.5 to 5 times."""

_MIXED = {
    "tensorflow": 'keras.mixed_precision.set_global_policy("mixed_float16")',
    "jax": "compute in jnp.bfloat16, or jax.default_matmul_precision",
    "torch": 'torch.autocast("cuda", dtype=torch.float16) around the forward pass',
}


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    kernels = trace.kernels if trace is not None else None
    if trace is None or kernels is None:
        return
    plain = kernels.eligible & ~kernels.tensor_core & ~kernels.sixteen_bit
    ratio = kernels.ratio(plain)
    if ratio < params.min_ratio:
        return
    if not kernels.has_tensor_cores:
        if not kernels.capability:
            yield Undecided(missing=Signal.DEVICE_TRACE, hint="the trace does not name its device")
        return
    yield Seen(
        title=f"matrix products and convolutions run in 32 bits for {format_ratio(ratio)} of the step, on a GPU whose "
        "tensor cores could run them in 16 bits (mixed precision)",
        confidence=0.8,
        where=op_places.of_rows(view, trace, kernels.row[plain]),
        evidence=(
            trace_evidence.evidence(trace, "full_precision_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "tensor_core_ratio", kernels.ratio(kernels.tensor_core), "ratio"),
            trace_evidence.evidence(trace, "capability", kernels.capability, "version"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, GAIN * ratio, low=LEAST * ratio, high=MOST * ratio, basis="modelled"),
        remedies=(Remedy(id="mixed-precision", text=f"{_MIXED[trace.framework]}; layer sizes in multiples of 8"),),
        explanation="The kernels' names show that they compute in 32 bits without tensor cores.",
    )


DETECTOR = Detector(
    code="KRN004",
    name="full-precision-matmul",
    cause="Hardware: hardware and code mismatch",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.DEVICE_TRACE}),
    params=Params(),
    detect=detect,
)
