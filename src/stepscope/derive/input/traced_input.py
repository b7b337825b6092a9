"""The input of the steps from op traces, if there is no readable tf.data model.

TensorFlow before 2.17 does not show its model, and a dataset without autotune has none. An op trace of a few steps
holds what a model would say: how long the steps waited, and the tree of stages with their self times. Traced steps may
be slower than others, so only the share of the step's call spent waiting carries over; the duration of calls is known
for all steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.input.model_reads import Read
from stepscope.derive.optrace.host import traced_stages
from stepscope.derive.optrace.steps.step_parts import PARTS
from stepscope.model.log.events import IteratorModel
from stepscope.model.report.components import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.steps.steps import Steps

MIN_STEPS = 3
"""With fewer traced steps one late batch would look like a wait."""


class TracedWait(Struct, frozen=True, kw_only=True):
    """The wait of one traced step."""

    start_ns: int
    end_ns: int
    ratio: float
    """Wait as a share of the step's call."""


class TracedInput(Struct, frozen=True, kw_only=True):
    """The input as op traces show it."""

    waits: tuple[TracedWait, ...]
    reads: tuple[Read, ...]
    """The trees in the form of tf.data's model."""
    refs: tuple[str, ...]
    """The captures it was read from: "capture:ID"."""


def build(steps: Steps, views: Sequence[OpView], pulled: AbstractSet[int]) -> TracedInput | None:
    """The traced input; None if no trace shows enough of these steps with batches that they took.

    Args:
        steps: the steps.
        views: op traces of their process.
        pulled: iterators from which the step's thread pulled in Python.
    """
    waits: list[TracedWait] = []
    reads: list[Read] = []
    refs: list[str] = []
    for view in views:
        tree = view.pipeline
        if tree is None or len(view.periods) < MIN_STEPS or not _same_steps(steps, view):
            continue
        waits += _waits(view)
        reads.append(
            Read(
                at=int(view.periods.end_ns[-1]),
                iterator=max(pulled, default=_consumed(steps)),
                executions=tree.batches,
                data=traced_stages.as_model(tree),
            )
        )
        refs += [view.ref] if view.ref else []
    return TracedInput(waits=tuple(waits), reads=tuple(reads), refs=tuple(refs)) if waits else None


OUTSIDE = tuple(part for part in PARTS if part in COMPONENTS and part != "input-wait")
"""Components of a step that lie outside its call, or that level 0 takes out of it."""


def _waits(view: OpView) -> list[TracedWait]:
    split = view.breakdown
    call = split.per_step.sum(axis=1) - sum(split.per_step_of(part) for part in OUTSIDE)
    rows = zip(
        view.periods.start_ns.tolist(),
        view.periods.end_ns.tolist(),
        split.per_step_of("input-wait").tolist(),
        call.tolist(),
        strict=True,
    )
    return [TracedWait(start_ns=a, end_ns=b, ratio=wait / whole) for a, b, wait, whole in rows if whole > 0]


def _same_steps(steps: Steps, view: OpView) -> bool:
    """Whether the trace shows about as many steps as were measured meanwhile; it may be of another task."""
    if not view.shows_steps:
        return False
    lo, hi = int(view.periods.start_ns[0]), int(view.periods.end_ns[-1])
    measured = int(((steps.starts >= lo) & (steps.starts < hi)).sum())
    return len(view.periods) <= 2 * measured and measured <= 2 * len(view.periods)


def _consumed(steps: Steps) -> int:
    """The iterator consumed by compiled steps: the agent names it when there is no model to read; else 0."""
    named = [m.iterator for m in steps.worker.all(IteratorModel) if m.error]
    return named[-1] if named else 0
