"""A loop of the graph recomputes the same result in each iteration.

## What it detects
Costly ops (products, solves, factorisations, convolutions, transforms, sorts, look-ups of many rows) in the body of a
loop of the compiled step - `tf.while_loop`, `for ... in tf.range` under AutoGraph, `tf.scan`, a Keras RNN with its
cell - that depend only on what no iteration changes: captured tensors, variables that the body does not write, loop
variables that it returns unchanged, constants. Examples are an RNN cell that derives its transition matrix from the
weights, or a decoder that projects the encoder's output again for each word.

## Why it matters
TensorFlow runs the whole body in each iteration; only XLA moves such work out of a loop. With 72 time steps it is done
72 times instead of once, and so is its gradient.

## Evidence
From the graph: what an iteration can change, and so which nodes give the same result in all of them. From an op trace:
`invariant_ratio`, share of the steps in these nodes and their gradients; `turns`, how often one of them ran each time
the loop did; `saved_ratio`, all but one iteration of it. Without a trace the same is counted from the shapes in the
graph, with a wide interval, if all of them are known, and so is the number of iterations.

Measured on TensorFlow 2.21: bench/cases/74-projection-each-word 2.48x faster (60 %), predicted 51 %; an orthogonal RNN
cell that solves at 72 time steps 2.4x faster (59 %), predicted 72 %. Counted from shapes:
batch-2/21-speech-caption-decode of bench/strangers 2.2x faster (54 %), predicted 43 % (14 to 72).

## Known limits
Ops of a few microseconds are missing from traces once they have run some 90 times: next to many of them the prediction
is too high. The ops' own gradients are counted. The lists that store each iteration's result for the gradient are not,
although a result computed once would not need them. Work inside functions that read variables (a `tf.function` called
in the body), in branches that an iteration decides on, and behind the shape of something that changes is not seen, nor
are loops of TensorFlow 1's control flow. TensorFlow itself computes what derives from constants alone before the loop.
A Python loop around calls of a compiled function is not included.

## Remedy
Compute it before the loop and pass the result in: in `call` of the layer that holds the cell (`class MyRNN(RNN)`, which
sets it on the cell before `super().call`), or above the loop. The gradient is then also computed once.

## References
TensorFlow: grappler's loop optimizer moves invariant nodes only when it is set to aggressive; FSE'22 study, inefficient
API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import invariant_work_in_loop
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.invariant_work_in_loop import InvariantWork
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.view import SessionView

_NAMED = 2
"""Maximum number of op types in a title."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the traced steps that computing it once is predicted to save."""
    min_elements: int = 1_000
    """Elements that a costly op works on: a matrix of 30 x 30 costs no more than starting its op."""


class _Cost(Struct, frozen=True, kw_only=True):
    """Cost of the work in one loop."""

    share: OpShare
    turns: float
    """Iterations each time that the loop runs."""

    @property
    def left_out(self) -> float:
        """Part of the share that is saved if one iteration is kept."""
        return 1 - 1 / self.turns if self.turns > 1 else 0.0

    @property
    def ratio(self) -> float:
        """Share of the steps that computing it once saves."""
        return self.share.ratio * self.left_out


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: the loop in which most could be saved."""
    yield from graph_pattern.price_work(
        view,
        lambda index: invariant_work_in_loop.build(index, params.min_elements),
        params.min_ratio,
        ask=lambda _: "a loop of the graph recomputes the same result in each iteration",
        weigh=_cost,
        see=lambda ops, work, cost: _finding(view, ops, work, cost, params),
    )


def _cost(ops: OpCosts, work: InvariantWork) -> _Cost:
    begun = max(1.0, ops.turns(work.around))
    return _Cost(share=ops.of_nodes(work.nodes, gradients=True), turns=ops.turns(work.nodes) / begun)


def _finding(view: SessionView, ops: OpCosts, work: InvariantWork, cost: _Cost, params: Params) -> Seen:
    share, saved = cost.share, cost.ratio
    heavy = ops.costliest(work.heavy) or list(work.heavy)
    kinds = list(dict.fromkeys(ops.index.table.type_of(row) for row in heavy))[:_NAMED]
    places = graph_pattern.places(view, ops.index, heavy)
    where = f" in {places[0].function}" if places and places[0].function else ""
    return Seen(
        title=f"a loop of the graph recomputes the same {' and '.join(kinds)}{where}: in each of its "
        f"{cost.turns:,.0f} iterations, from values that no iteration changes, {format_ratio(share.ratio)} of the step",
        confidence=0.85,
        where=places,
        evidence=(
            trace_evidence.evidence(ops.trace, "invariant_ratio", share.ratio, "ratio"),
            trace_evidence.evidence(ops.trace, "saved_ratio", saved, "ratio", params.min_ratio),
            trace_evidence.evidence(ops.trace, "turns", cost.turns, "turns"),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, saved, low=share.low * cost.left_out, high=share.high * cost.left_out, basis="modelled"),
        remedies=(
            Remedy(
                id="compute-before-loop",
                text="compute it once before the loop and pass the result in; for an RNN's cell in call of the "
                "enclosing layer, which sets it on the cell before super().call",
                safety="review",
            ),
        ),
        explanation="These nodes of the loop's body read captured tensors, variables that it does not write, and "
        f"constants, so each iteration (of an RNN each time step) gets the same result. {trace_evidence.source(ops)}",
    )


DETECTOR = Detector(
    code="GRF016",
    name="invariant-work-in-loop",
    cause="API: inefficient API usage",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"GRF019"}),
)
