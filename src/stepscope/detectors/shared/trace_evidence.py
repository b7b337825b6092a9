"""Shared by the detectors on op traces: evidence with the capture that it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive import steps_view
from stepscope.tables.findings import Evidence

if TYPE_CHECKING:
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place

_PREFIX = "StatefulPartitionedCall/"


def refs(trace: OpView | None) -> tuple[str, ...]:
    """The capture that a trace's figures come from."""
    return (trace.ref,) if trace is not None and trace.ref else ()


def evidence(trace: OpView | None, metric: str, value: float, unit: str, threshold: float | None = None) -> Evidence:
    """A figure from a trace; None: from the shapes of the graph."""
    return Evidence(metric=metric, value=value, unit=unit, threshold=threshold, refs=refs(trace))


def steps(trace: OpView) -> Evidence:
    """Number of steps that a finding is based on."""
    return evidence(trace, "traced_steps", len(trace.periods), "steps")


def input_wait(view: SessionView, trace: OpView) -> float:
    """Share of the steps that waits for input: of the traced ones, at most that of all steady ones where it is known.

    A trace of a job's first steps waits for longer.
    """
    measured, traced = steps_view.of(view), trace.breakdown.ratio("input-wait")
    known = measured.anatomy.ratio("input-wait") if measured is not None else 0.0
    return min(traced, known) if known > 0 else traced


def basis(ops: OpCosts) -> Evidence:
    """Number of steps that a finding's times are from, or of nodes that they were counted from."""
    if ops.trace is not None:
        return steps(ops.trace)
    return Evidence(metric="counted_nodes", value=ops.nodes, unit="nodes")


def source(ops: OpCosts) -> str:
    """Where the times of some nodes are from, as a sentence."""
    if ops.trace is not None:
        return "The op trace shows their time and that of their gradients."
    return "No op trace was taken: their time is counted from the shapes in the graph, relative to that of all nodes."


def short(name: str) -> str:
    """An op's name as users know it: without the call of the enclosing function."""
    return name.removeprefix(_PREFIX)


def stage_places(view: SessionView) -> tuple[Place, ...]:
    """Where the slowest stage of the input was made, and its function, if the run recorded them."""
    pipe = view.pipeline
    made = pipe.slowest.datasets if pipe is not None and pipe.slowest is not None else ()
    places = [p for d in made if (p := view.dataset_place(d)) is not None]
    places += [view.place(d.fn_file, d.fn_line, d.fn_end_line, d.fn_name) for d in made if d.fn_file and d.fn_line]
    return tuple(dict.fromkeys(places))
