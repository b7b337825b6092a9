"""Ops of the compiled step work on copies of one thing, or on zeros: diagonal, one-hot and nearly empty matrices.

## What it detects
Copies: products, solves, factorisations, sums and other ops of the step's graph whose operands are copies made by
`tf.tile`, `tf.repeat`, `tf.broadcast_to`, `tf.fill`, a stack of one tensor or a look-up with such ids, or that are
equal rows of the batches that the step is given. Copies are followed from where they come in through views, casts, ops
of each element, products, called functions and loops. Either all operands of an op are copies, and so is its result; or
one operand is the same for the whole batch: a solve factorises it for each sample, a product reads it for each sample.

Zeros: products and solves with a diagonal matrix made as a whole; products (`tf.matmul`, `tensordot`, `einsum`, a
`Dense` layer) with a matrix that is zero nearly everywhere. Such a matrix is made by `tf.one_hot`, counts
(`tf.math.bincount`, `CategoryEncoding`), or one-hot rows that are joined, in the step or in a map of the input
pipeline; or the batches are such: bags of words, tags; or it is made once and captured: the edges of a graph.

It is a finding if what need not be done takes a tenth of the step or more.

## Why it matters
TensorFlow does not know that the copies are equal. `tf.linalg.solve` with one matrix tiled over 32 samples factorises
it 32 times, and as often in the gradient. A layer on an input repeated for ten draws of a dropout computes ten times
the same up to the first random op. A history that stands in each of 64 rows, one for each candidate, is encoded 64
times. A product with a one-hot matrix of 12,000 columns multiplies all rows of the table but one by zero, and the
gradient repeats it.

## Evidence
From the graph: where the copies or zeros are made, the number of `copies` if its shapes show it, and the `columns` of a
matrix of zeros. From a few of the first batches that functions, iterators, fits and sessions are given: `distinct_rows`
of `batch_rows`, and `zeros_ratio`; of several the batch with the fewest copies and zeros counts. From an op trace:
`operand_ratio`, share of the steps in these ops and their gradients; `saved_ratio`, the needless part of it.

Measured on one core, TensorFlow 2.21: batch-2/14-implicit-diffusion of bench/strangers 3.9x faster (74 %),
predicted 69 %; a question encoded for each of 16 answers 8.3x (88 %), predicted 83 %; an encoder run for each of 12
draws of a dropout 2.5x (60 %), predicted 56 %; a matrix stacked for a batch and multiplied 5.5x (82 %), predicted 69 %.
On two shared cores: a GRU on a history repeated for 50 candidates 3.2-9.6x (69-90 %), predicted 78 %; edges of a graph
as a matrix of 2,700 rows 3.5-5.0x (71-80 %), predicted 79 %; batches, a history in each of 64 rows 11.9x (92 %),
predicted 89 %; 128 rows of 8 questions 5.8-8.1x (83-88 %), predicted 89 %; 8 tags of 8,000 5.2-11x (81-91 %), predicted
83 %; 60 words of 20,000 1.4x (30 %), predicted 38 % (27-40). One-hot rows of 12,000 columns
(bench/cases/35-one-hot-into-matmul) 13x (92 %), predicted 90 %.

## Known limits
The saving is counted: all copies but one of an op that works on nothing else; of a solve its factors; of a product the
bytes of the matrix against its multiplications; of a product with zeros the rows that are looked up and added instead.
Batches that a compiled fit takes from a dataset are not examined, only the arrays that it is made of. Two inputs whose
equal rows stand in different orders are no copies together. What a function returns is not followed out of its call. A
matrix that is changed where it is zero (smoothed) is none any more. Nothing is said of products with zeros on TPUs,
whose matrix units are made for them.

## Remedy
Copy later, or not at all: compute for one and tile the result where it meets what differs; most ops broadcast a
dimension of one by themselves. Give the step each row once. Solve for all right-hand sides at once, as columns of one
matrix. Look rows up: `tf.gather(table, ids)`, `keras.layers.Embedding`, for several the (weighted) sum of these rows;
sums by category are `tf.math.unsorted_segment_sum`.

## References
TensorFlow: `tf.linalg.solve`, `tf.linalg.lu`, `tf.nn.embedding_lookup`, `tf.nn.embedding_lookup_sparse`; NumPy's
broadcasting rules; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph.operands import wasteful_operands
from stepscope.derive.graph.independent_loops import ARGUMENT
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, compute_ratio, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.model.log.program import InputSeen
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.optrace import PlaneKind
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.operands.wasteful_work import Waste, WastefulWork
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Needless share of the traced steps."""


class _Cost(Struct, frozen=True, kw_only=True):
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
        graph_pattern.whole(lambda index: _found(view, index, samples)),
        params.min_ratio,
        ask=lambda _: "ops of the step work on copies of one thing, or on zeros",
        weigh=_cost,
        see=lambda ops, _, cost: _finding(view, ops, cost, params),
    )


def _found(view: StepsView, index: GraphIndex, samples: int) -> tuple[WastefulWork, ...]:
    """The ops with such operands; on TPUs, whose matrix units are made for products, without those on zeros."""
    trace = view.traces.main
    tpu = trace is not None and trace.device >= 0 and trace.trace.planes[trace.device].kind is PlaneKind.TPU
    found = wasteful_operands.build(index, samples, view.worker.all(InputSeen))
    return tuple(work for work in found if not tpu or work.waste not in _ON_ZEROS)


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
    most = compute_ratio(view) or 1.0  # a trace of predict has the batches without what Keras does around them
    saved = min(most, cost.ratio)
    kind = ops.index.table.type_of(work.op)
    at, made = (graph_pattern.places(view, ops.index, rows) for rows in ([work.op], work.makers))
    if work.seen is not None:
        made = (view.place(work.seen.file, work.seen.line, function=work.seen.function),) if work.seen.line else ()
        origin = f"of the batches that it is given{_at(made)}"
    elif _is_captured(ops, work):
        origin = "made once, outside of the function"
    else:
        origin = f"made by {ops.index.table.type_of(work.makers[0])}{_at(made)}"
    number = f"{work.copies:,} " if work.copies else ""
    number += "copies" if work.seen is None else "equal rows"
    needless = "is work on its zeros" if work.waste in {"diagonal", *_ON_ZEROS} else "is done again for each copy"
    return Seen(
        title=f"{kind}{_at(at)} {_SAYS[work.waste].format(number, _used(work))}, {origin}: "
        f"{format_ratio(saved)} of the step {needless}",
        confidence=0.85,
        where=tuple(dict.fromkeys([*at, *made])),
        evidence=(
            trace_evidence.evidence(ops.trace, "operand_ratio", cost.ops, "ratio"),
            trace_evidence.evidence(ops.trace, "saved_ratio", cost.ratio, "ratio", params.min_ratio),
            *([Evidence(metric="copies", value=work.copies, unit="copies")] if work.copies else []),
            *([Evidence(metric="columns", value=work.columns, unit="columns")] if work.columns else []),
            *_batch(work),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, min(most, cost.ratio), low=min(most, cost.low), high=min(most, cost.high), basis="modelled"),
        remedies=(_remedy(ops, work),),
        explanation="The graph shows where the operands are made and which ops work on them. "
        f"{trace_evidence.source(ops)} The needless part is counted from their shapes.",
    )


def _remedy(ops: OpCosts, work: WastefulWork) -> Remedy:
    if work.seen is not None and work.waste == "all":
        return _ROWS_ONCE
    return _SPARSE if _is_captured(ops, work) else _REMEDIES[work.waste]


def _is_captured(ops: OpCosts, work: WastefulWork) -> bool:
    """Whether what it works on is a tensor that the function captures."""
    return work.seen is None and ops.index.table.type_of(work.makers[0]) == ARGUMENT


def _used(work: WastefulWork) -> str:
    if work.waste != "zeros":
        return f" of {work.columns:,} columns" if work.columns else ""
    return f" but for {max(1, round(work.used * work.columns)):,} of {work.columns:,} columns in each row"


def _batch(work: WastefulWork) -> tuple[Evidence, ...]:
    """What was seen in a batch."""
    if work.seen is None:
        return ()
    if work.waste == "zeros":
        return (Evidence(metric="zeros_ratio", value=1 - work.used, unit="ratio"),)
    return (
        Evidence(metric="batch_rows", value=work.seen.rows, unit="rows"),
        Evidence(metric="distinct_rows", value=work.seen.distinct, unit="rows"),
    )


def _at(places: Sequence[Place]) -> str:
    return f" (line {places[0].line})" if places else ""


_ON_ZEROS = frozenset({"zeros", "one-hot", "multi-hot", "by-category"})
_SAYS: dict[Waste, str] = {
    "all": "computes the same for {}",
    "solve": "solves {} of one matrix",
    "product": "multiplies with {} of one matrix",
    "sum": "adds up {} of the same",
    "diagonal": "works with all of a diagonal matrix",
    "zeros": "multiplies with a matrix of zeros{1}",
    "one-hot": "looks rows up by a product with a one-hot matrix{1}",
    "multi-hot": "adds rows up by a product with a multi-hot matrix{1}",
    "by-category": "adds rows up by category by a product with a one-hot matrix{1}",
}
_SPARSE = Remedy(
    id="sparse-matrix",
    text="keep it sparse: tf.sparse.from_dense(matrix) once, tf.sparse.sparse_dense_matmul in the step; or add rows up "
    "along its entries: tf.math.unsorted_segment_sum(tf.gather(x, sources), targets, rows)",
    safety="review",
)
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
    "zeros": Remedy(
        id="look-up",
        text="give the step the numbers of the columns that are not zero, with their values as weights, and add up "
        "their rows: keras.layers.Embedding and a weighted sum, tf.nn.embedding_lookup_sparse; or a sparse matrix, "
        "tf.sparse.sparse_dense_matmul",
        safety="review",
    ),
    "one-hot": Remedy(
        id="gather",
        text="look the rows up: tf.gather(table, ids), tf.nn.embedding_lookup, or keras.layers.Embedding",
    ),
    "multi-hot": Remedy(
        id="gather",
        text="look the rows up and sum them: tf.reduce_sum of tf.gather(table, ids) over the ids of a sample, or of "
        "keras.layers.Embedding",
    ),
    "by-category": Remedy(
        id="segment-sum",
        text="sum the rows by their ids: tf.math.unsorted_segment_sum(rows, ids, num_segments)",
    ),
    "sum": Remedy(id="scale", text="multiply one of them by their number instead of adding up copies", safety="review"),
}


_ROWS_ONCE = Remedy(
    id="rows-once",
    text="give the step each row once, and copy its result to the rows that need it: tf.gather(result, which), "
    "tf.repeat; what all rows share needs a batch of one",
    safety="review",
)


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
