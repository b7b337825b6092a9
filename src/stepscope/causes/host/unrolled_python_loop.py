"""Cost of a job's first traces, and the Python loops that ran while they were made.

One-off time: it is compared with the time from model building to the last step, without imports.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.host import repeated_code
from stepscope.derive.numeric import intervals
from stepscope.derive.python import framework_files, loop_source, stack_samples
from stepscope.model.log.events import ModelBuilt, Traced
from stepscope.model.log.graph import GraphRead
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.session.session import Worker

MIN_TURNS = 16
"""Iterations; a dozen make a graph no larger than those of deep networks."""
MIN_NODES_PER_VARIABLE = 100.0
"""Of a graph that was not read. Measured: layers in a loop 8 to 20, time steps in a loop 380 to 2,400."""
MIN_SAMPLES = 10
"""Fewer are too few to name lines."""
TRACED = "/framework/func_graph.py"
"""TensorFlow code below which a function is traced."""
ALIKE = 0.7
"""Share of a graph's nodes: a second trace of the same code lacks the ops that make variables."""


class UnrolledLoop(Struct, frozen=True, kw_only=True):
    """A loop or comprehension of user code whose body ran while a graph was made."""

    file: str
    function: str
    line: int
    end_line: int
    ratio: float
    """Share of the time sampled in user code under tracing that has this loop on the stack. Gradients and graph
    optimisation have no user frames; they grow with the ops that user code made, so the share holds for them too."""
    samples: int


class FirstTraces(Struct, frozen=True, kw_only=True):
    """Tracing over the whole run, on the step thread."""

    span_ns: int
    """From model building to the last step."""
    tracing_ns: int
    """Time in traces and graph compilation."""
    nodes: int
    """Number of nodes of the largest graph."""
    nodes_per_variable: float
    """The same per variable, at least one variable; infinite if its variables are unknown."""
    steps: int
    """All steps, warm-up included."""
    loops: tuple[UnrolledLoop, ...]
    """Most sampled first."""
    graph: int
    """Id of that graph in the table of nodes, or of its second trace; 0 if neither was read completely."""

    @property
    def ratio(self) -> float:
        """Tracing's share of the span."""
        return min(1.0, self.tracing_ns / self.span_ns) if self.span_ns > 0 else 0.0

    def per_step(self, ratio: float) -> int:
        """A share of the span, spread over all steps of the run: ns."""
        return round(ratio * self.span_ns / max(1, self.steps))


class GraphMakingLoop(Struct, frozen=True, kw_only=True):
    """The loop that made most of a graph."""

    place: tuple[str, str, int, int]
    """File, function, first and last line."""
    ratio: float
    """Share of the graph's nodes, or of the samples taken while it was made."""
    turns: int
    """How often the same line made the same kind of op in the same layer; 0 if the graph was not read."""
    variables: int
    """Number of variables that the repeated nodes read."""
    in_turn: bool | None
    """Whether iterations need the results of earlier ones; None if the graph was not read."""
    samples: int
    """On which ``ratio`` rests; 0 if it rests on nodes."""


def worst(view: StepsView) -> GraphMakingLoop | None:
    """The loop whose iterations one graph contains, by its nodes, else by the samples taken while it was made.

    Iterations that read their own weights are a loop over layers, which a model needs: None.
    """
    index, traces = view.graphs, view.get(build)
    if traces is None:
        return None
    sampled = traces.loops[0] if traces.loops and traces.loops[0].samples >= MIN_SAMPLES else None
    place = (sampled.file, sampled.function, sampled.line, sampled.end_line) if sampled is not None else None
    if index is not None and traces.graph in index.graphs:
        found = repeated_code.build(index, traces.graph, view.session.sources, MIN_TURNS)
        place = place or (found.loop if found is not None else None)
        if found is None or found.variables >= found.turns or place is None:
            return None
        return GraphMakingLoop(
            place=place,
            ratio=found.ratio,
            turns=found.turns,
            variables=found.variables,
            in_turn=found.in_turn,
            samples=0,
        )
    if sampled is None or place is None or traces.nodes_per_variable < MIN_NODES_PER_VARIABLE:
        return None
    return GraphMakingLoop(
        place=place, ratio=sampled.ratio, turns=0, variables=0, in_turn=None, samples=sampled.samples
    )


def build(view: StepsView) -> FirstTraces | None:
    """None without steps or traces."""
    steps = view.steps
    tracing, traced = view.calls(Kind.TRACE), steps.worker.all(Traced)
    if not len(tracing) or not traced:
        return None
    starts, spans = tracing.starts, tracing.spans
    begin = int(min(starts.min(), *(m.at for m in steps.worker.all(ModelBuilt)), starts.max()))
    inside = [s for s in stack_samples.all_samples(steps) if _within(s.at, spans)]
    largest = max(traced, key=lambda t: t.nodes)
    return FirstTraces(
        span_ns=int(steps.ends[-1]) - begin,
        tracing_ns=intervals.total(spans),
        nodes=largest.nodes,
        nodes_per_variable=largest.nodes / max(1, largest.variables) if largest.variables >= 0 else math.inf,
        steps=len(steps),
        loops=_loops(view, inside),
        graph=_read_of(steps.worker, largest.nodes),
    )


def _read_of(worker: Worker, nodes: int) -> int:
    """The largest traced graph that was read and has about ``nodes`` nodes; 0 for none.

    The first trace of a function that makes variables is discarded, and the second one, of the same code, is kept.
    """
    reads = [g for g in worker.all(GraphRead) if g.role == "function" and g.state == "read"]
    largest = max(reads, key=lambda g: g.nodes, default=None)
    return largest.id if largest is not None and largest.nodes >= ALIKE * nodes else 0


def _within(at: int, spans: intervals.Intervals) -> bool:
    index = int(np.searchsorted(spans[0], at, side="right")) - 1
    return index >= 0 and at < spans[1][index]


def _loops(view: StepsView, inside: list[Sample]) -> tuple[UnrolledLoop, ...]:
    """Loops of user functions that were called from a framework's tracing, by the time sampled below them.

    Where the stack shows the trace begin, only what lies below: a callback that loops around ``predict`` makes no ops.
    """
    whole = 0
    weight: Counter[tuple[str, str, int, int]] = Counter()
    count: Counter[tuple[str, str, int, int]] = Counter()
    for sample in inside:
        framework_above = forward = False
        seen = set()
        traced = next((i for i, frame in enumerate(sample.frames) if TRACED in frame.file), 0)
        for frame in sample.frames[traced:]:
            framework_above = framework_above or (not frame.own and framework_files.is_framework(frame.file))
            if not (frame.own and framework_above):
                continue
            forward = True
            source = view.source_of(frame.file)
            lines = loop_source.repeating_at(source, frame.line) if source is not None else None
            if lines is not None:
                seen.add((frame.file, frame.function, *lines))
        whole += sample.weight_ns if forward else 0
        for key in seen:
            weight[key] += sample.weight_ns
            count[key] += 1
    return tuple(
        UnrolledLoop(
            file=key[0],
            function=key[1],
            line=key[2],
            end_line=key[3],
            ratio=value / whole if whole else 0.0,
            samples=count[key],
        )
        for key, value in weight.most_common()
    )
