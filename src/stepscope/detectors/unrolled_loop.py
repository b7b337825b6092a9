"""A Python loop was unrolled into the graph, and making that graph takes a large part of the job.

## What it detects
A `for ... in range(...)` of user code that ran while a function was traced, so that its body stands in the graph once
per turn, in a job that spends a large part of its time from model building to the last step on tracing.

## Why it matters
Every turn adds its ops, their gradients and their optimisation. Graphs of thousands of nodes take seconds to minutes
to make, use memory, and run no faster than a loop inside of the graph.

## Evidence
`tracing_ratio`: share of the time from model building to the last step (imports left out) in traces. `loop_ratio`:
share of the samples in user code of that time with the loop on the stack. `graph_nodes`: ops of the largest graph.
`nodes_per_variable`: they grow with the turns of a loop that repeats the same computation; a loop over layers brings
variables with each turn (a stack of twelve transformer blocks trains with 20 nodes per variable, 80 time steps of a
recurrent cell with 400 or more).

## Known limits
A loop over layers is no problem, however large its graph, and is told by its variables. Loops over something else
than a range are not looked at. What the large graph costs in each step is not part of the cost; `ns_per_step` is the
cost spread over all steps of the run.

## Remedy
Use a loop of the graph: `tf.while_loop`, `tf.scan`, `for i in tf.range(n)` under AutoGraph, or `keras.layers.RNN` with
a cell; or vectorise over the time steps.

## References
TensorFlow guide on tf.function, section "Loops"; FSE'22 study, confusion with computation model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive import first_traces
from stepscope.detectors.base import Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.finding import Evidence, Finding, Remedy
from stepscope.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.15)
    """Of the time from model building to the last step: below it a long first step is no finding."""
    min_loop_ratio: Ratio = Ratio(0.3)
    """Of the tracing time sampled in user code."""
    min_nodes: int = 1_000
    """Ops of the largest graph; M3 of the static-check measurements: range(300) made 1,202."""
    min_nodes_per_variable: float = 100.0
    """Of the largest graph. Measured: layers in a loop 8 to 20, time steps in a loop 380 to 2,400."""
    min_samples: int = 10
    """Fewer say nothing about lines."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided]:
    """Yield at most one finding: the loop with most of the tracing time."""
    traces = first_traces.build(session)
    if traces is None or not traces.loops or traces.nodes < params.min_nodes:
        return
    if traces.nodes_per_variable < params.min_nodes_per_variable:
        return
    loop = traces.loops[0]
    ratio = traces.ratio * loop.ratio
    if ratio < params.min_ratio or loop.ratio < params.min_loop_ratio or loop.samples < params.min_samples:
        return
    share = format_ratio(traces.ratio)
    limit = params.min_nodes_per_variable
    density = (
        (Evidence(metric="nodes_per_variable", value=traces.nodes_per_variable, unit="nodes", threshold=limit),)
        if math.isfinite(traces.nodes_per_variable)
        else ()
    )
    yield Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title=f"the Python loop in {loop.function} is unrolled into a graph of {traces.nodes:,} nodes; tracing takes "
        f"{format_ns(traces.tracing_ns)}, {share} of the time from model building to the last step",
        severity=severity_of(ratio),
        confidence=0.85,
        symptom="Time: slow initialization time",
        cause="Model: confusion with computation model",
        introduced_stage="model building",
        exposed_stage="initialization",
        pipeline_stage="forward-backward",
        where=(session.place(loop.file, loop.line, loop.end_line, loop.function),),
        evidence=(
            Evidence(metric="tracing_ratio", value=traces.ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="loop_ratio", value=loop.ratio, unit="ratio", threshold=params.min_loop_ratio),
            Evidence(metric="graph_nodes", value=traces.nodes, unit="nodes", threshold=params.min_nodes),
            *density,
            Evidence(metric="samples", value=loop.samples, unit="samples", threshold=params.min_samples),
        ),
        cost=cost_of(session, ratio, low=0.8 * ratio, high=traces.ratio, ns_per_step=traces.per_step(ratio)),
        remedies=(
            Remedy(
                id="loop-in-graph",
                text="loop inside of the graph: keras.layers.RNN with a cell, tf.while_loop, tf.scan, or tf.range "
                "under AutoGraph",
            ),
            Remedy(id="vectorise", text="or compute all time steps at once, where they do not depend on each other"),
        ),
        explanation="The loop is Python: tracing runs it turn by turn and puts its ops into the graph each time.",
    )


DETECTOR = Detector(
    code="GRF002",
    name="unrolled-python-loop",
    needs=frozenset({Signal.STEPS, Signal.SAMPLES, Signal.TRACES}),
    params=Params(),
    detect=detect,
)
