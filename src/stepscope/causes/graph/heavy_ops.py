"""The ops that take most of the traced steps, each with the recipe by which it can be run alone.

Ops of the same recipe are one row: the layers of a model often have the same shapes.

Serves op_slower_than_alone and cheaper_way_measured, through op_limits, and the replay.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.graph import op_recipe
from stepscope.derive.graph.full_shapes import FullShapes
from stepscope.derive.optrace import wall_shares

if TYPE_CHECKING:
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.optrace.wall_shares import WallShares
    from stepscope.derive.view import SessionView
    from stepscope.model.session.replays import Recipe
    from stepscope.tables.records import F64

MOST = 20
"""Ops that are replayed at most, the heaviest first, until the time is up."""
COMPUTE = (
    "device-compute",
    "collective",
    "device-gap",
    "host-python",
    "host-compute",
    "device-wait",
    "launch",
    "runtime",
    "scheduling",
)
"""Parts of a traced step that are the step's call."""


class HeavyOp(Struct, frozen=True, kw_only=True):
    """An op, or several of one recipe. Times in ns of wall time, see ``wall_shares``."""

    type: str
    """Type in the program."""
    recipe: Recipe | None
    key: str
    """``Recipe.key``; "" without one."""
    why: str
    """Why it cannot be run alone; "" if it can."""
    labels: tuple[int, ...]
    """Its labels in the trace (``OpView.labels``)."""
    rows: tuple[int, ...]
    """Rows of its nodes, the heaviest first."""
    per_step_ns: F64
    """float64[step]: wall time."""
    calls_per_step: float
    run_ns: float
    """Mean duration of a run, whatever ran at the same time."""

    @property
    def step_ns(self) -> float:
        """Wall time in the mean step."""
        return float(self.per_step_ns.mean())

    @property
    def call_ns(self) -> float:
        """Wall time of one run."""
        return self.step_ns / self.calls_per_step if self.calls_per_step else 0.0


class HeavyOps(Struct, frozen=True, kw_only=True):
    """The ops of the traced steps."""

    trace: OpView
    ops: tuple[HeavyOp, ...]
    """All of them, the heaviest first."""
    step_ns: float
    """The mean traced step."""
    compute_ns: float
    """Time of its call: ops, and the framework around them."""

    def replayed(self) -> tuple[HeavyOp, ...]:
        """Those that are to be run alone."""
        return tuple(op for op in self.ops if op.recipe is not None)[:MOST]


def build(view: SessionView) -> HeavyOps | None:
    """None without a trace of steps whose work is the host's, or without graphs."""
    trace, index = view.traces.main, view.graphs
    if trace is None or index is None or trace.device >= 0 or not len(trace.periods):
        return None
    shares = wall_shares.build(trace)
    ops = _grouped(trace, index, shares, FullShapes(index, view.step_samples))
    step_ns = trace.periods.mean_ns
    return HeavyOps(trace=trace, ops=ops, step_ns=step_ns, compute_ns=step_ns * trace.breakdown.ratio(*COMPUTE))


def _grouped(trace: OpView, index: GraphIndex, shares: WallShares, shapes: FullShapes) -> tuple[HeavyOp, ...]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    found: dict[tuple[str, str], tuple[str, Recipe | None]] = {}
    order = np.argsort(-shares.wall_ns.sum(axis=1), kind="stable")
    nodes = {}
    for label in order[shares.calls[order] > 0].tolist():
        name, ran = trace.labels.ops[label]
        nodes[label] = index.node_of(name, ran)
        key, why, recipe = _recipe(index, shapes, nodes[label], ran)
        groups[key or op_recipe.base_type(ran), why].append(label)
        found.setdefault((key or op_recipe.base_type(ran), why), (op_recipe.base_type(ran), recipe))
    ops = [
        HeavyOp(
            type=found[group][0],
            recipe=found[group][1],
            key=group[0] if found[group][1] is not None else "",
            why=group[1],
            labels=tuple(labels),
            rows=tuple(nodes[label] for label in labels if nodes[label] >= 0),
            per_step_ns=shares.wall_ns[labels].sum(axis=0),
            calls_per_step=int(shares.calls[labels].sum()) / shares.steps,
            run_ns=float(shares.run_ns[labels].sum()) / max(1, int(shares.calls[labels].sum())),
        )
        for group, labels in groups.items()
    ]
    return tuple(sorted(ops, key=lambda op: -op.step_ns))


def _recipe(index: GraphIndex, shapes: FullShapes, row: int, ran: str) -> tuple[str, str, Recipe | None]:
    """(key, why there is none, recipe)."""
    try:
        recipe = op_recipe.build(index, shapes, row, ran)
    except op_recipe.NotReplayableError as error:
        return "", str(error), None
    return recipe.key(), "", recipe
