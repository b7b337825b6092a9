"""Ops of the compiled step work on copies of one thing, or on all of a diagonal matrix.

## What it detects
Products, solves, factorisations, sums and other ops of the step's graph whose operands are copies made by `tf.tile`,
`tf.repeat`, `tf.broadcast_to`, `tf.fill`, a stack of one tensor or a look-up with such ids, if what they do again for
each copy takes a tenth of the step or more. Copies are followed from where they are made through views, casts, ops of
each element, products and called functions. Either all operands of an op are copies, and so is its result; or one
operand is the same for the whole batch: a solve factorises it for each sample, a product reads it for each sample.

## Why it matters
TensorFlow does not know that the copies are equal. `tf.linalg.solve` with one matrix tiled over 32 samples factorises
it 32 times, and as often in the gradient. A layer on an input repeated for ten draws of a dropout computes ten times
the same up to the first random op.

## Evidence
From the graph: where the copies are made, and their number, `copies`, if its shapes show it. From an op trace:
`operand_ratio`, share of the steps in these ops and their gradients; `saved_ratio`, the needless part of it.

Measured on one core, TensorFlow 2.21: batch-2/14-implicit-diffusion of benchmarks/strangers 3.9x faster (74 %),
predicted 69 %; a question encoded for each of 16 answers 8.3x (88 %), predicted 83 %; an encoder run for each of 12
draws of a dropout 2.5x (60 %), predicted 56 %; a matrix stacked for a batch and multiplied 5.5x (82 %), predicted 69 %.

## Known limits
The saving is counted: all copies but one of an op that works on nothing else; of a solve its factors; of a product the
bytes of the matrix against its multiplications. Copies that the input pipeline or NumPy makes are not seen, nor those
that two rows of a batch happen to be. What a function returns is not followed out of its call.

## Remedy
Copy later, or not at all: compute for one and tile the result where it meets what differs; most ops broadcast a
dimension of one by themselves. Solve for all right-hand sides at once, as columns of one matrix.

## References
TensorFlow: `tf.linalg.solve`, `tf.linalg.lu`; NumPy's broadcasting rules; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.graph import wasteful_operands
from stepscope.detectors import graph_pattern, trace_evidence
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.wasteful_work import Waste, WastefulWork
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.report.finding import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Needless share of the traced steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What the operands cost."""

    ops: float
    """Share of the traced steps in ops with such operands."""
    ratio: float
    """The needless part of it."""
    low: float
    high: float
    largest: tuple[WastefulWork, ...]
    """Works of the kind and place with the largest part, the costliest first."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all such ops of a step."""
    samples = graph_pattern.samples(view)
    yield from graph_pattern.price_work(
        view,
        graph_pattern.whole(lambda index: wasteful_operands.build(index, samples)),
        params.min_ratio,
        ask=lambda _: "ops of the step work on copies of one thing, or on all of a diagonal matrix",
        weigh=_cost,
        see=lambda ops, _, cost: _finding(view, ops, cost, params),
    )


def _cost(ops: OpCosts, found: Sequence[WastefulWork]) -> _Cost:
    groups: dict[tuple[object, ...], list[WastefulWork]] = defaultdict(list)
    for work in found:
        groups[work.waste, work.part, work.least, _line(ops.index, work.op)].append(work)
    total = low = high = every = 0.0
    best, largest = 0.0, tuple(found[:1])
    for works in groups.values():
        share = ops.of_nodes({row for work in works for row in work.nodes}, gradients=True)
        saved = share.ratio * works[0].part
        every, total = every + share.ratio, total + saved
        low, high = low + share.low * works[0].least, high + share.high
        if saved > best:
            order = {row: i for i, row in enumerate(ops.costliest([work.op for work in works]))}
            best = saved
            largest = tuple(sorted(works, key=lambda work: order.get(work.op, len(order))))
    return _Cost(ops=min(1.0, every), ratio=min(1.0, total), low=low, high=min(1.0, high), largest=largest)


def _line(index: GraphIndex, row: int) -> object:
    line, layer = index.maker_of(row)
    return line or (layer.id if layer is not None else None)


def _finding(view: StepsView, ops: OpCosts, cost: _Cost, params: Params) -> Seen:
    work = cost.largest[0]
    kind = ops.index.table.type_of(work.op)
    at, made = (graph_pattern.places(view, ops.index, rows) for rows in ([work.op], work.makers))
    maker = ops.index.table.type_of(work.makers[0])
    number = f"{work.copies:,} copies" if work.copies else "copies"
    needless = "is work on its zeros" if work.waste == "diagonal" else "is done again for each copy"
    return Seen(
        title=f"{kind}{_at(at)} {_SAYS[work.waste].format(number)}, made by {maker}{_at(made)}: "
        f"{format_ratio(cost.ratio)} of the step {needless}",
        confidence=0.85,
        where=tuple(dict.fromkeys([*at, *made])),
        evidence=(
            trace_evidence.evidence(ops.trace, "operand_ratio", cost.ops, "ratio"),
            trace_evidence.evidence(ops.trace, "saved_ratio", cost.ratio, "ratio", params.min_ratio),
            *([Evidence(metric="copies", value=work.copies, unit="copies")] if work.copies else []),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, cost.ratio, low=cost.low, high=cost.high, basis="modelled"),
        remedies=(_REMEDIES[work.waste],),
        explanation="The graph shows where the operands are made and which ops work on them. "
        f"{trace_evidence.source(ops)} The needless part is counted from their shapes.",
    )


def _at(places: Sequence[Place]) -> str:
    return f" (line {places[0].line})" if places else ""


_SAYS: dict[Waste, str] = {
    "all": "computes the same for {}",
    "solve": "solves {} of one matrix",
    "product": "multiplies with {} of one matrix",
    "sum": "adds up {} of the same",
    "diagonal": "works with all of a diagonal matrix",
}
_REMEDIES: dict[Waste, Remedy] = {
    "all": Remedy(
        id="copy-later",
        text="compute it once, before the copies are made, and copy the result where it meets what differs; most ops "
        "broadcast a dimension of one without tf.tile or tf.repeat",
        safety="review",
    ),
    "solve": Remedy(
        id="solve-once",
        text="solve once for all right-hand sides, as the columns of one matrix: tf.linalg.solve(a, tf.transpose(b)); "
        "or factor the matrix once (tf.linalg.lu, tf.linalg.cholesky)",
        safety="review",
    ),
    "product": Remedy(
        id="multiply-once",
        text="multiply once: leave the matrix without copies and move the batch into the rows of the other operand "
        "(tf.tensordot, tf.matmul of a reshaped tensor)",
        safety="review",
    ),
    "diagonal": Remedy(
        id="scale-rows",
        text="keep the diagonal as a vector: d[:, None] * x instead of tf.matmul(tf.linalg.diag(d), x), x * d from the "
        "right, x / d[:, None] instead of a solve",
    ),
    "sum": Remedy(id="scale", text="multiply one of them by their number instead of adding up copies", safety="review"),
}


DETECTOR = Detector(
    code="GRF021",
    name="wasteful-operands",
    cause="API: inefficient API usage",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
