"""A program with sessions adds ops to its graph in the loop, so that runs take longer and longer.

## What it detects
A compat.v1 graph whose number of ops rises with the steps until the end of the run, if the runs of the added ops, or
the Python that adds them, take a noticeable part of the steady wall time: `session.run(variable.assign(value))`,
`session.run(tf.reduce_mean(x))`, a loss or an optimizer that is made in each step.

## Why it matters
A session prunes and optimises the whole graph before the first run of every new fetch: milliseconds in a small graph,
seconds in one that a long loop has filled. The graph is kept in memory until the end.

## Evidence
`growing_ratio`: share of the steady wall time in runs of newly made fetches, beyond a usual run, and in TensorFlow's
Python outside of runs, which adds ops, by samples. `ops_per_step`: growth of the graph, read by the agent's thread at
most four times a second; `graph_ops` at the end; `fresh_runs`.

## Known limits
The extra time of runs of old fetches in a larger graph is not part of the cost. A graph that occasionally grows by
little (a saver made at the end) is not a finding.

## Remedy
Make every op before the loop and feed what changes through a placeholder (`variable.load(value, session)` or one assign
op with a placeholder); call `tf.compat.v1.get_default_graph().finalize()` before the loop, so that adding raises.

## References
TensorFlow documentation of Graph.finalize; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import growing_graph
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.growing_graph import GraphGrowth
    from stepscope.derive.steps_view import StepsView
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Of steady wall time: the least that a report calls low."""
    min_ops_per_step: float = 0.05
    """With one op in twenty steps a graph is not finished."""
    min_until_ratio: Ratio = Ratio(0.75)
    """Of the steady steps' time: a graph that was finished during the run is no longer a problem. The agent records
    sizes at intervals of a tenth of the run so far: a graph that grows to the end grew in the last fifth too."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    steps, growth = view.steps, view.get(growing_graph.build)
    if growth is None:
        return
    if growth.ops_per_step < params.min_ops_per_step or growth.until_ratio < params.min_until_ratio:
        return
    ratio = growth.total_ns / steps.steady_ns
    if ratio >= params.min_ratio:
        yield _finding(view, growth, ratio, params)


def _finding(view: StepsView, growth: GraphGrowth, ratio: float, params: Params) -> Seen:
    steady = view.steps.steady_ns
    runs = (
        f"{growth.fresh_runs:,} runs of the added ops take {format_ns(growth.fresh_ns / growth.fresh_runs)} each"
        if growth.fresh_ns >= growth.building_ns and growth.fresh_runs
        else f"adding takes {format_ns(growth.building_ns)} in all"
    )
    return Seen(
        title=f"the graph grows by {growth.ops_per_step:.2g} ops a step, to {growth.last_ops:,}: the loop adds ops to "
        f"it, and {runs}: {format_ratio(ratio)} of the time",
        confidence=0.95,
        where=tuple(view.place(file, first, last, name) for file, name, first, last in growth.lines),
        evidence=(
            Evidence(metric="growing_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="ops_per_step", value=growth.ops_per_step, unit="ops", threshold=params.min_ops_per_step),
            Evidence(metric="graph_ops", value=growth.last_ops, unit="ops"),
            Evidence(metric="fresh_runs", value=growth.fresh_runs, unit="runs"),
        ),
        # What is certain to stay are the lasting runs: the steps' own Python may be what adds the ops.
        cost=cost_of(
            view, ratio, low=0.8 * growth.fresh_ns / steady, high=max(1.1 * ratio, 1 - growth.lasting_ns / steady)
        ),
        remedies=(
            Remedy(
                id="build-graph-once",
                text="make these ops once, before the loop, and feed what changes through a placeholder",
            ),
            Remedy(id="finalize-graph", text="call graph.finalize() before the loop: code that adds to it then raises"),
        ),
        explanation="When Session.run gets a fetch for the first time, TensorFlow prepares the whole graph again. Here "
        "that happens in every step, with more ops each time.",
    )


def _has_sessions(view: SessionView) -> bool:
    steps = view.steps
    return steps is None or bool((steps.worker.records.kind == Kind.SESSION_RUN).any())


DETECTOR = Detector(
    code="GRF004",
    name="growing-graph",
    symptom="Time: increasing time over time",
    cause="Model: confusion with computation model",
    introduced_stage="model building",
    exposed_stage="training",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.GRAPHS}),
    params=Params(),
    detect=detect,
    applies=lambda view: "" if _has_sessions(view) else "the job runs no session",
)
