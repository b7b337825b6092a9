"""A loop of the graph works row by row, although its iterations are independent.

## What it detects
A `tf.map_fn`, or a loop over rows under AutoGraph, inside the compiled step: each iteration reads its own row, and
passes on nothing but its result or a sum. A recurrence (`tf.scan`, RNN) passes on a state and does not count, nor does
a loop around training steps, which changes variables.

## Why it matters
The executor starts each op of each iteration separately: 5 to 20 us, whatever it does, once more for its gradient, and
one after another. For 128 rows and 20 ops that is tens of milliseconds; on the whole batch each op is started once.

## Evidence
From the graph: the loop and what its iterations pass on. From an op trace: `loop_ratio`, share of the steps from the
first op of the loop to its last, including its gradient's; `turns_per_step`: how often one of its ops was seen to run;
`saved_ratio`: `loop_ratio` minus each op's time beyond the 10 us for starting it; the whole batch needs that time too.
Traces omit ops of a few microseconds once they have run some 90 times. Idle moments between the loop's inputs and its
consumers are therefore attributed to the loop, in proportion to its share of the nodes that may run then.

Without an op trace (a step of many thousand small ops is too dear for a first look), the loop's nodes are counted from
the graph, times their iterations, relative to the work of all nodes.

Measured (bench/cases/33-map-fn-in-loss): TensorFlow 2.21, 128 rows: 5.3x faster on the whole batch (81 % saved);
predicted 81 %. TensorFlow 2.15: 3.7x in wall time and 2.4x in CPU time (73 and 58 %); predicted 53 %.

## Known limits
Ops without a batched form are not recognised. Iterations that work for long (more than 10 us an op) gain less, and
nothing is then reported.

## Remedy
Work on the whole batch: most ops take leading dimensions (`tf.matmul`, `tf.gather(batch_dims=1)`, `tf.math.top_k`,
reductions with an axis); or `tf.vectorized_map`.

## References
TensorFlow: `tf.vectorized_map` on its speed against `tf.map_fn`; while_v2.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph import independent_loops
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.graph.independent_loops import IndependentLoop
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.view import SessionView

START_NS = 10_000
"""Time for starting an op, in which smaller ops are negligible. Measured in traces of loops: 5 to 20 us."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the traced steps that working on the whole batch is predicted to save."""


class _Cost(Struct, frozen=True, kw_only=True):
    """Cost of the loops of a step."""

    loops: list[IndependentLoop]
    """Loops that cost something, the costliest first."""
    share: OpShare

    @property
    def ratio(self) -> float:
        """Share of the steps that working on the whole batch saves."""
        return max(0.0, self.share.ratio - self.share.beyond)


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: the loops of one step, the costliest first."""
    yield from graph_pattern.price_work(
        view,
        graph_pattern.whole(independent_loops.build),
        params.min_ratio,
        ask=lambda _: "a loop of the graph works row by row",
        weigh=_cost,
        see=lambda ops, _, cost: _finding(view, ops, cost, params),
    )


def _cost(ops: OpCosts, loops: Sequence[IndependentLoop]) -> _Cost:
    each = [_cost_of([loop], ops) for loop in loops]
    costly = sorted((cost for cost in each if cost.ratio > 0), key=lambda cost: -cost.ratio)
    return _cost_of([loop for cost in costly for loop in cost.loops], ops)


def _cost_of(loops: list[IndependentLoop], ops: OpCosts) -> _Cost:
    return _Cost(loops=loops, share=ops.of_loops([part for loop in loops for part in loop.parts], START_NS))


def _finding(view: SessionView, ops: OpCosts, cost: _Cost, params: Params) -> Seen:
    share, saved = cost.share, cost.ratio
    places = graph_pattern.places(view, ops.index, [loop.row for loop in cost.loops])
    where = f" in {places[0].function}" if places and places[0].function else ""
    small = f"{share.turns:,.0f} iterations of small ops in each step" if share.turns else "its small ops"
    return Seen(
        title=f"a loop of the graph{where} works row by row (map_fn, or a loop over rows): {small} "
        f"take {format_ratio(share.ratio)} of the step",
        confidence=0.85,
        where=places,
        evidence=(
            trace_evidence.evidence(ops.trace, "loop_ratio", share.ratio, "ratio"),
            trace_evidence.evidence(ops.trace, "saved_ratio", saved, "ratio", params.min_ratio),
            trace_evidence.evidence(ops.trace, "turns_per_step", share.turns, "turns"),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(
            view,
            saved,
            low=max(0.0, share.low - share.beyond),
            high=share.high,
            basis="modelled",
        ),
        remedies=(
            Remedy(
                id="whole-batch",
                text="do it for the whole batch at once: ops take leading dimensions, reductions an axis, gathers "
                "batch_dims; or tf.vectorized_map instead of tf.map_fn",
            ),
        ),
        explanation="An iteration of the loop passes only its counter, its result, or a sum on to the next: the "
        "iterations are independent.",
    )


DETECTOR = Detector(
    code="GRF005",
    name="row-by-row-loop-in-graph",
    cause="API: not using batch API",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
