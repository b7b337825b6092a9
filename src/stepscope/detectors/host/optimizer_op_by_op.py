"""PyTorch's optimizer changes the weights op by op on the CPU, where one kernel could do it in a single pass.

## What it detects
Adam, AdamW and Adagrad on the CPU without `fused=True`, if their steps take a tenth of the time or more.

## Why it matters
By default an optimizer runs some ten ops on each tensor, and each reads and writes all of it; for small tensors the
calls themselves take the time. The fused kernel reads and writes each tensor once, on all threads. On the CPU it is off
by default, and so is `foreach`.

## Evidence
`optimizer_ratio`: share of the steady time between PyTorch's hooks around the step. `tensors`, `elements`: what it
changed in the step that was looked at.

## Known limits
The saving is that of a table of tensors, for single precision (docs/benchmarks/torch-optimizers.md: 55 to 89 %), not of
this model. Results differ in the last digits. Steps that are given a closure, as PyTorch Lightning does, are left out:
forward and backward pass are in their time. SGD is left out: with momentum a fused kernel saves a third, without
nothing.

## Remedy
`torch.optim.Adam(..., fused=True)`, from PyTorch 2.4 on; in `TrainingArguments` of transformers
`optim="adamw_torch_fused"`.

## References
PyTorch documentation, torch.optim; torch 2.13, `optim/optimizer.py`, `_default_to_fused_or_foreach`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import dense_gradients, optimizer_work
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import fused_optimizers
from stepscope.tables.findings import Evidence
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.optimizer_work import OptimizerWork
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.findings import Remedy


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the steady time."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield one finding for each such optimizer."""
    tables = {one.work.name.id for one in view.get(dense_gradients.build)}
    for work in view.get(optimizer_work.build):
        remedy = fused_optimizers.remedy(view, work)
        if remedy is not None and work.ratio >= params.min_ratio and work.name.id not in tables:
            yield _finding(view, work, remedy, params)


def _finding(view: StepsView, work: OptimizerWork, remedy: Remedy, params: Params) -> Seen:
    seen = work.seen
    least, usual, most = (part * work.ratio for part in fused_optimizers.SAVED[seen.cls])
    return Seen(
        title=f"{seen.cls} changes {seen.elements:,} numbers in {seen.tensors:,} tensors op by op: "
        f"{format_ratio(work.ratio)} of the time",
        confidence=0.9,
        where=optimizer_work.places(view, work, seen.cls),
        evidence=(
            Evidence(
                metric="optimizer_ratio",
                value=work.ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:optimizer",),
            ),
            Evidence(metric="tensors", value=seen.tensors, unit="tensors"),
            Evidence(metric="elements", value=seen.elements, unit="elements"),
        ),
        cost=cost_of(view, usual, low=least, high=most, basis="modelled"),
        remedies=(remedy,),
        explanation="About ten ops read and write each tensor; the fused kernel does all of it in one pass.",
    )


DETECTOR = Detector(
    code="HST019",
    name="optimizer-op-by-op",
    cause="API: not using efficient API",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"torch"}),
    params=Params(),
    detect=detect,
)
