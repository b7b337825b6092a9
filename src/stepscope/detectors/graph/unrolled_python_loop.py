"""A Python loop was unrolled into the graph, and building that graph takes a large part of the job.

## What it detects
A Python loop or comprehension of user code that ran while a function was traced, so that the graph contains its body
once per iteration, in a job that spends a large part of its time from model building to the last step on tracing.

## Why it matters
Every iteration adds its ops, their gradients and their optimisation. Graphs of thousands of nodes take seconds to
minutes to build, use memory, and run no faster than a loop inside the graph.

## Evidence
`tracing_ratio`: share of the time from model building to the last step (without imports) in traces. `graph_nodes`: ops
of the largest graph. From the graph's nodes: `turns`: how often the same line made the same kind of op in the same
layer; `loop_ratio`: share of the nodes that are such copies; `variables`: weights that they read. Iterations that read
their own weights are a loop over layers, which does not count.

A job that ends within seconds after its last trace has no table of nodes. `loop_ratio` is then computed from the stack
samples taken in user code during tracing: the share that has the loop on the stack. `nodes_per_variable` separates time
steps from layers: 12 transformer blocks have 20, 80 steps of a recurrent cell 400 or more.

## Known limits
The cost of the large graph in each step is not included: GEN002 states that. The cost is paid once:
`ratio` is its share of the time from model building to the last step, and `ns_per_step` the same time divided by the
steps of the run, so that a longer run has a smaller one.

## Remedy
Use a loop of the graph: `tf.while_loop`, `tf.scan`, `for i in tf.range(n)` under AutoGraph, or `keras.layers.RNN` with
a cell; or vectorise over the time steps.

## References
TensorFlow guide on tf.function, section "Loops"; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import unrolled_python_loop
from stepscope.derive.python import stack_samples
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.host.unrolled_python_loop import FirstTraces, GraphMakingLoop
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.15)
    """Of the time from model building to the last step: below it a long first step is not a finding."""
    min_loop_ratio: Ratio = Ratio(0.3)
    """Share of the nodes, or of the tracing time sampled in user code."""
    min_nodes: int = 1_000
    """Ops of the largest graph; M3 of the static-check measurements: range(300) made 1,202."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding: the loop with most of the graph."""
    traces = view.get(unrolled_python_loop.build)
    if traces is None or traces.nodes < params.min_nodes or traces.ratio < params.min_ratio:
        return
    index = view.graphs
    known = index is not None and traces.graph in index.graphs
    if not known and not stack_samples.sampled(view.steps):
        yield Undecided(
            missing=Signal.NODES, hint=f"a graph of {traces.nodes:,} nodes was neither read nor seen being built"
        )
        return
    loop = view.get(unrolled_python_loop.worst)
    if loop is None or loop.ratio < params.min_loop_ratio or traces.ratio * loop.ratio < params.min_ratio:
        return
    yield _finding(view, traces, loop, params)


def _evidence(traces: FirstTraces, loop: GraphMakingLoop, params: Params) -> Iterator[Evidence]:
    yield Evidence(metric="loop_ratio", value=loop.ratio, unit="ratio", threshold=params.min_loop_ratio)
    if loop.turns:
        least = unrolled_python_loop.MIN_TURNS
        yield Evidence(metric="turns", value=loop.turns, unit="turns", threshold=least)
        yield Evidence(metric="variables", value=loop.variables, unit="variables")
        return
    if math.isfinite(traces.nodes_per_variable):
        limit = unrolled_python_loop.MIN_NODES_PER_VARIABLE
        yield Evidence(metric="nodes_per_variable", value=traces.nodes_per_variable, unit="nodes", threshold=limit)
    limit = unrolled_python_loop.MIN_SAMPLES
    yield Evidence(metric="samples", value=loop.samples, unit="samples", threshold=limit)


def _finding(view: StepsView, traces: FirstTraces, loop: GraphMakingLoop, params: Params) -> Seen:
    ratio = traces.ratio * loop.ratio
    file, function, line, end_line = loop.place
    share = format_ratio(traces.ratio)
    return Seen(
        title=f"the Python loop in {function} is unrolled into a graph of {traces.nodes:,} nodes; tracing takes "
        f"{format_ns(traces.tracing_ns)}, {share} of the time from model building to the last step",
        confidence=0.85,
        where=(view.place(file, line, end_line, function),),
        evidence=(
            Evidence(metric="tracing_ratio", value=traces.ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="graph_nodes", value=traces.nodes, unit="nodes", threshold=params.min_nodes),
            *_evidence(traces, loop, params),
        ),
        cost=cost_of(view, ratio, low=0.8 * ratio, high=traces.ratio, ns_per_step=traces.per_step(ratio)),
        remedies=_remedies(loop),
        explanation="The loop is Python: tracing runs each iteration and adds its ops to the graph each time.",
    )


def _remedies(loop: GraphMakingLoop) -> tuple[Remedy, ...]:
    text = "a loop inside the graph: keras.layers.RNN with a cell, tf.while_loop, tf.scan, or tf.range under AutoGraph"
    at_once = "compute all iterations at once, vectorised"
    in_graph = Remedy(id="loop-in-graph", text=text)
    if loop.in_turn is None:
        return in_graph, Remedy(id="vectorise", text=f"or {at_once}, if none needs the result of an earlier one")
    if loop.in_turn:
        return (in_graph,)
    return Remedy(id="vectorise", text=f"{at_once}: none needs the result of an earlier one"), in_graph


DETECTOR = Detector(
    code="GRF002",
    name="unrolled-python-loop",
    symptom="Time: slow initialization time",
    cause="Model: confusion with computation model",
    introduced_stage="model building",
    exposed_stage="initialization",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.TRACES}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
