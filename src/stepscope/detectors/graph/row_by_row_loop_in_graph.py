"""A loop of the graph works row by row, although its turns do not need each other.

## What it detects
A `tf.map_fn`, or a loop over rows under AutoGraph, inside of the compiled step: each turn reads its own row, and hands
on nothing but its result or a sum. A recurrence (`tf.scan`, RNN) hands on a state and is not meant, nor is a loop
around training steps, which changes variables.

## Why it matters
The executor starts each op of each turn by itself: 5 to 20 us, whatever it does, once more for its gradient, and one
after another. For 128 rows and 20 ops that is tens of milliseconds; on the whole batch each op is started once.

## Evidence
From the graph: the loop and what its turns hand on. From an op trace: `loop_ratio`, share of the steps from the first
op of the loop to its last, that of its gradient included; `turns_per_step`: how often one of its ops was seen to run;
`saved_ratio`: without the time that the ops took beyond the 10 us that starting one takes, which the whole batch takes
as well. Ops of a few microseconds are in no trace once they have run some 90 times: moments without any op, between
what the loop needs and what needs it, count as the loop's by its part of the nodes that may run then.

Measured (bench/cases/33-map-fn-in-loss): TensorFlow 2.21, 128 rows: 5.3 times as
fast on the whole batch; said was that 81 % would be saved, and 81 % were.
TensorFlow 2.15: 3.7 times in wall time and 2.4 in CPU time (73 and 58 %), said was 53 %.

## Known limits
Ops for which there is no batched form cannot be told. Turns that work for long (more than 10 us an op) gain less, and
then nothing is said.

## Remedy
Work on the whole batch: most ops take leading dimensions (`tf.matmul`, `tf.gather(batch_dims=1)`, `tf.math.top_k`,
reductions with an axis); or `tf.vectorized_map`.

## References
TensorFlow: `tf.vectorized_map` on its speed against `tf.map_fn`; while_v2.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive.graph import independent_loops
from stepscope.detectors import graph_cost, trace_evidence
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, Undecided, cost_of
from stepscope.model.report.finding import Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.independent_loops import IndependentLoop, LoopPart
    from stepscope.derive.optrace.node_costs import NodeCosts
    from stepscope.derive.view import SessionView

START_NS = 10_000
"""What starting an op takes, next to which smaller ones take nothing. Measured in traces of loops: 5 to 20 us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps, that working on the whole batch is predicted to save."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided | CaptureRequest]:
    """Yield at most one finding: the loops of one step, the costliest first."""
    index = view.graphs
    loops = independent_loops.build(index) if index is not None else ()
    if not loops:
        return
    ops = view.node_costs
    if ops is None:
        yield graph_cost.question("a loop of the graph works row by row; whether that costs anything")
        return
    costs = [(_saved(ops, [loop]), loop) for loop in loops]
    costs = sorted((c for c in costs if c[0] > 0), key=lambda cost: -cost[0])
    if costs and _saved(ops, [loop for _, loop in costs]) >= params.min_ratio:
        yield _finding(view, ops, [loop for _, loop in costs], params)


def _parts(loops: list[IndependentLoop]) -> list[LoopPart]:
    return [part for loop in loops for part in loop.parts]


def _saved(ops: NodeCosts, loops: list[IndependentLoop]) -> float:
    share = ops.of_loops(_parts(loops), START_NS)
    return max(0.0, share.ratio - share.beyond)


def _finding(view: SessionView, ops: NodeCosts, loops: list[IndependentLoop], params: Params) -> Seen:
    share = ops.of_loops(_parts(loops), START_NS)
    saved = max(0.0, share.ratio - share.beyond)
    places = graph_cost.places(view, ops.index, [loop.row for loop in loops])
    where = f" in {places[0].function}" if places and places[0].function else ""
    turns = f"{share.turns:,.0f} turns of small ops a step, " if share.turns else "small ops, "
    return Seen(
        title=f"a loop of the graph{where} works row by row: {turns}"
        f"{format_ratio(share.ratio)} of it (map_fn, or a loop over rows)",
        confidence=0.85,
        where=places,
        evidence=(
            trace_evidence.evidence(ops.trace, "loop_ratio", share.ratio, "ratio"),
            trace_evidence.evidence(ops.trace, "saved_ratio", saved, "ratio", params.min_ratio),
            trace_evidence.evidence(ops.trace, "turns_per_step", share.turns, "turns"),
            trace_evidence.steps(ops.trace),
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
        explanation="What a turn of the loop hands on to the next is only its counter, its result, or a sum: no turn "
        "needs the one before.",
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
