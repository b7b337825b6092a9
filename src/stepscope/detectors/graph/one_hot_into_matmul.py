"""Rows of a table are looked up by multiplying it with a one-hot matrix.

## What it detects
`tf.one_hot` whose result goes into a matrix product (`tf.matmul`, `tensordot`, `einsum`, a `Dense` layer) of the
compiled step, if the matrix and the product take a large part of the step. Also a multi-hot or count matrix
(`CategoryEncoding`, `tf.math.bincount`, the maximum or sum of one-hot rows): a bag of words. Also the product with the
transposed matrix (`tf.matmul(one_hot, rows, transpose_a=True)`), which sums rows by category.

## Why it matters
A product with a one-hot matrix multiplies all rows of the table but one by zero. With 12,000 categories this is 12,000
times the work of copying one row, and the gradient repeats it. The matrix must also be made and read.

## Evidence
From the graph: the one-hot matrix, its `depth`, and the products with it. From an op trace: `product_ratio`, share of
the steps in these and their gradients.

Measured (bench/cases/35-one-hot-into-matmul): TensorFlow 2.21, 12,000 categories: 13x faster with a gather (92 %
saved); predicted 89 %. TensorFlow 2.15: 9.8x faster (90 %); predicted 95 %.

## Known limits
A matrix that is changed before the product (masked, smoothed) is not followed. On TPUs, whose matrix units are made for
it, nothing is reported.

## Remedy
`tf.gather(table, ids)` or `tf.nn.embedding_lookup`, `keras.layers.Embedding` instead of one-hot and `Dense`. For a
multi-hot matrix the sum of these rows; if an id that occurs twice must count once, `tf.unique` or weights of 0. Sums by
category are `tf.math.unsorted_segment_sum`.

## References
TensorFlow: `tf.nn.embedding_lookup`; FSE'22 study, not using an efficient API.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.graph import one_hot_into_matmul
from stepscope.detectors import graph_pattern, trace_evidence
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.model.session.optrace import PlaneKind
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.one_hot_into_matmul import OneHotProducts
    from stepscope.derive.optrace.node_costs import NodeCosts, OpShare
    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps."""
    min_depth: int = 256
    """Without a trace: a product with fewer columns costs no more than the ops around it, and none is requested."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all one-hot products of a step."""
    trace = view.traces.main
    if trace is not None and trace.device >= 0 and trace.trace.planes[trace.device].kind is PlaneKind.TPU:
        return
    yield from graph_pattern.price(
        view,
        graph_pattern.whole(one_hot_into_matmul.build),
        params.min_ratio,
        ask=lambda found: _suspicion(found, params),
        weigh=_share,
        see=lambda ops, found, share: _finding(view, ops, found, share, params),
    )


def _suspicion(found: Sequence[OneHotProducts], params: Params) -> str:
    deepest = max(one.columns for one in found)
    if deepest < params.min_depth:
        return ""
    return f"a {_kind(found)} matrix of {deepest:,} columns is multiplied"


def _share(ops: NodeCosts, found: Sequence[OneHotProducts]) -> OpShare:
    return ops.of_nodes([row for one in found for row in one.nodes], gradients=True)


def _finding(
    view: SessionView, ops: NodeCosts, every: Sequence[OneHotProducts], share: OpShare, params: Params
) -> Seen:
    costs = [(ops.of_nodes(one.nodes, gradients=True).ratio, one) for one in every]
    found = [one for ratio, one in sorted(costs, key=lambda cost: -cost[0]) if ratio > 0]
    depth = found[0].columns
    columns = f" of {depth:,} columns" if depth else ""
    bag, grouped = found[0].bag, found[0].products == found[0].by_category
    what, instead = ("summed by category", "a segment sum") if grouped else ("looked up", "gather")
    if bag and not grouped:
        what = "summed"
    places = graph_pattern.places(view, ops.index, [row for one in found for row in (one.one_hot, *one.products)])
    return Seen(
        title=f"rows are {what} by multiplying with a {_kind(found)} matrix{columns}: "
        f"{format_ratio(share.ratio)} of the step; {instead} costs next to nothing",
        confidence=0.9,
        where=places,
        evidence=(
            trace_evidence.evidence(ops.trace, "product_ratio", share.ratio, "ratio", params.min_ratio),
            *((Evidence(metric="depth", value=depth, unit="columns"),) if depth else ()),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(view, share.ratio, low=share.low, high=share.high),
        remedies=_remedies(found, bag=bag),
        explanation=f"The graph shows the {_kind(found)} matrix on one side of the products; the op trace shows their "
        "time and that of their gradients.",
    )


def _remedies(found: Sequence[OneHotProducts], *, bag: bool) -> tuple[Remedy, ...]:
    remedies = []
    if any(set(one.products) - set(one.by_category) for one in found):
        text = "look the rows up: tf.gather(table, ids), tf.nn.embedding_lookup, or keras.layers.Embedding"
        text += ", and sum them: tf.reduce_sum over the ids of a sample" if bag else ""
        remedies.append(Remedy(id="gather", text=text))
    if any(one.by_category for one in found):
        text = "sum the rows by their ids: tf.math.unsorted_segment_sum(rows, ids, num_segments)"
        remedies.append(Remedy(id="segment-sum", text=text))
    return tuple(remedies)


def _kind(found: Sequence[OneHotProducts]) -> str:
    return "multi-hot" if found[0].bag else "one-hot"


DETECTOR = Detector(
    code="GRF007",
    name="one-hot-into-matmul",
    cause="API: not using efficient API",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
