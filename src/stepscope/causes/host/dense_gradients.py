"""Tables of PyTorch's optimizers whose gradient is dense, with zeros in most of its rows.

Serves dense_gradient_of_table and optimizer_op_by_op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import optimizer_work

if TYPE_CHECKING:
    from stepscope.causes.host.optimizer_work import OptimizerWork
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.program import TableSeen

MIN_ELEMENTS = 250_000
"""Numbers of a table below which it is small; as for TensorFlow's (GRF009)."""
MIN_TALL = 8
"""Rows of a table for each of its columns. The weights of a layer, of which units may be dead, are less tall: most have
at most four times as many outputs as inputs."""
MIN_ZERO = 0.75
"""Part of its rows without a gradient."""
MIN_RATIO = 0.10
"""Of the steady time, for what its other rows cost at least."""
FILL = 0.3
"""Time to fill a dense gradient with zeros, in fresh memory, to that of Adam's passes over it. Measured: 0.33 (backward
pass and optimizer of batch-6/b-quarry of bench/strangers, 21 and 64 % of the step)."""


class DenseGradients(Struct, frozen=True, kw_only=True):
    """The tables of one optimizer."""

    work: OptimizerWork
    tables: tuple[tuple[TableSeen, float], ...]
    """With the part of the rows that have no gradient; the largest first."""
    low: float
    """Share of the steady time in the optimizer's work on these rows."""
    usual: float
    """With the time to fill their gradients."""
    high: float
    """With the same part of the backward pass."""


def build(view: StepsView) -> tuple[DenseGradients, ...]:
    """The optimizers with such tables."""
    found = []
    for work in view.get(optimizer_work.build):
        tables = [(one, work.zero_ratio(one)) for one in work.seen.tables if _is_table(one)]
        tables = [(one, zero) for one, zero in tables if zero >= MIN_ZERO]
        part = min(1.0, sum(zero * work.part(one) for one, zero in tables))
        low, backward = part * work.ratio, part * view.anatomy.ratio("backward")
        if low >= MIN_RATIO:
            usual = low + min(FILL * low, backward)
            found.append(
                DenseGradients(work=work, tables=tuple(tables), low=low, usual=usual, high=min(1.0, low + backward))
            )
    return tuple(found)


def _is_table(one: TableSeen) -> bool:
    return one.rows * one.columns >= MIN_ELEMENTS and one.rows >= MIN_TALL * one.columns
