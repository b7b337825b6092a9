"""Each step of PyTorch changes all rows of a table of which its batch touches few: the gradient is dense.

## What it detects
Parameters with many more rows than columns, on the CPU, whose gradient is dense and holds zeros in three quarters of
its rows and more, if the optimizer's work on these rows takes a tenth of the time.

## Why it matters
The backward pass of an `nn.Embedding` fills a gradient as large as the table in each step, and Adam reads and writes
the table, its gradient and two moments: the cost grows with the table, not with the batch.

## Evidence
`table_elements`, and `zero_ratio`: the part of 64 rows of its gradient, looked at after up to three steps, that begin
with zeros. `optimizer_ratio`: share of the steady time between PyTorch's hooks around the optimizer's step.
`unused_ratio`: the part of it on rows without a gradient, by the number of elements.

Measured (docs/benchmarks/torch-optimizers.md: tables of 300,000 and 100,000 by 32, Adam, batches of 1,024, two CPUs):
67.4 ms a step, 3.6 with `sparse=True` and SparseAdam (95 % saved; 93 predicted), 19.4 with the fused kernel.

## Known limits
That the table is an embedding is taken from its shape. SparseAdam trains differently: moments of rows that are not
looked up stay as they are; weight decay of these rows is not possible. Gradients on a device are not looked at, nor
steps that are given a closure (PyTorch Lightning does so). The time to fill the gradient is taken to be 0.3 of that of
the optimizer; all of the backward pass is in the upper end of the cost.

## Remedy
`nn.Embedding(..., sparse=True)` with `torch.optim.SparseAdam`, `SGD` or `Adagrad` for the tables and the optimizer as
it is for the rest; or keep the training as it is, with the fused kernel (HST019).

## References
PyTorch documentation, nn.Embedding (`sparse`), torch.optim.SparseAdam; FSE'22 study, inefficient model structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import dense_gradients, optimizer_work
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import fused_optimizers
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.dense_gradients import DenseGradients
    from stepscope.derive.steps_view import StepsView

SPARSE = (
    "give the table sparse gradients, nn.Embedding(..., sparse=True), and an optimizer for itself that takes them: "
    "torch.optim.SparseAdam, SGD or Adagrad; the training changes: rows that are not looked up keep their moments"
)
DECAY = ", and their weights do not decay"


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(dense_gradients.MIN_RATIO)
    """Of the steady time, in the optimizer's work on rows without a gradient."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield one finding for each optimizer with such tables."""
    for found in view.get(dense_gradients.build):
        if found.low >= params.min_ratio:
            yield _finding(view, found, params)


def _finding(view: StepsView, found: DenseGradients, params: Params) -> Seen:
    work, (table, zero) = found.work, found.tables[0]
    other = fused_optimizers.remedy(view, work)
    many = "" if len(found.tables) == 1 else f" and of {len(found.tables) - 1} more"
    return Seen(
        title=f"each step changes all {table.rows:,} rows of a table{many}, and {format_ratio(zero)} of them have no "
        f"gradient: {format_ratio(found.usual)} of the time",
        confidence=0.9,
        where=optimizer_work.places(view, work, "Embedding"),
        evidence=(
            Evidence(
                metric="unused_ratio",
                value=found.low,
                unit="ratio",
                threshold=params.min_ratio,
                refs=("component:optimizer",),
            ),
            Evidence(metric="optimizer_ratio", value=work.ratio, unit="ratio"),
            Evidence(metric="zero_ratio", value=zero, unit="ratio", threshold=dense_gradients.MIN_ZERO),
            Evidence(metric="table_elements", value=table.rows * table.columns, unit="elements"),
        ),
        cost=cost_of(view, found.usual, low=found.low, high=found.high, basis="modelled"),
        remedies=(
            Remedy(id="sparse-gradients", text=f"{SPARSE}{DECAY if work.seen.decays else ''}"),
            *((other,) if other is not None else ()),
        ),
        explanation=f"The gradient is dense: {work.seen.cls} reads and writes the whole table, its gradient and its "
        "moments in each step.",
    )


DETECTOR = Detector(
    code="HST020",
    name="dense-gradient-of-table",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"torch"}),
    params=Params(),
    detect=detect,
)
