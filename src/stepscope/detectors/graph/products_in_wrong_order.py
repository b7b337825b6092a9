"""Matrix products in an order that creates a large intermediate matrix, which the other order avoids.

## What it detects
Two successive matrix products of the compiled step, (A B) C, with at most a scaling between them, that take a large
part of the step and would need less than half of the multiplications as A (B C).

## Why it matters
Both orders give the same result. Attention without a softmax over 1,024 positions of 32 numbers makes a matrix of a
million scores for each sample; multiplied from the right it makes one of a thousand, for a thirtieth of the work.

## Evidence
From the graph: both products and their shapes; `left_ratio`, the other order's share of the multiplications. From an op
trace: `product_ratio`, share of the steps in these and their gradients.

Measured: TensorFlow 2.21, two layers of linear attention over 1,024 positions: 3.8x faster (3.6 to 4.3, three pairs).

## Known limits
The cost is modelled by counting multiplications: small products run less efficiently than large ones. Products whose
shapes the graph leaves open are not followed, nor are `einsum` and products with something other than a scaling between
them (softmax, a mask, a bias), which cannot be reordered. The result differs in its last digits.

## Remedy
Multiply the last two first: `tf.matmul(q, tf.matmul(k, v, transpose_a=True))`.

## References
Cormen and others, "Introduction to Algorithms", matrix-chain multiplication; Katharopoulos and others, "Transformers
are RNNs", ICML 2020; FSE'22 study, inefficient model structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import products_in_wrong_order
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.products_in_wrong_order import ProductChain
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Share of the traced steps that the other order saves."""
    max_left: Ratio = Ratio(0.5)
    """Share of the multiplications: if the two orders need nearly the same work, the shapes of products decide."""
    min_between: int = 4_096
    """Elements of the matrix between the products; without a trace a smaller one is not asked about."""


class _Cost(Struct, frozen=True, kw_only=True):
    """Cost of all chains of a step."""

    share: OpShare
    largest: ProductChain
    ratio: float
    """Share of the steps that the other order saves."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all chains of a step."""

    def find(index: GraphIndex) -> list[ProductChain]:
        every = products_in_wrong_order.build(index, params.max_left, graph_pattern.samples(view))
        return [one for one in every if one.shape[0] * one.shape[1] >= params.min_between]

    yield from graph_pattern.price_work(
        view,
        graph_pattern.whole(find),
        params.min_ratio,
        ask=lambda found: (
            f"matrix products create an intermediate matrix of {found[0].shape[0]:,} x {found[0].shape[1]:,}"
        ),
        weigh=_cost,
        see=lambda ops, found, cost: _finding(view, ops, found, cost, params),
    )


def _cost(ops: OpCosts, found: Sequence[ProductChain]) -> _Cost:
    each = [ops.of_nodes(one.nodes, gradients=True).ratio for one in found]
    return _Cost(
        share=ops.of_nodes([row for one in found for row in one.nodes], gradients=True),
        largest=found[each.index(max(each))],
        ratio=sum(ratio * (1 - one.left) for ratio, one in zip(each, found, strict=True)),
    )


def _finding(view: SessionView, ops: OpCosts, found: Sequence[ProductChain], cost: _Cost, params: Params) -> Seen:
    share, largest = cost.share, cost.largest
    saved = min(cost.ratio, share.high)
    part = saved / share.ratio if share.ratio else 0.0
    rows, columns = largest.shape
    return Seen(
        title=f"matrix products in the wrong order: they make an intermediate matrix of {rows:,} x {columns:,}, "
        f"{format_ratio(share.ratio)} of the step; the other order takes {format_ratio(largest.left)} of the work",
        confidence=0.85,
        where=graph_pattern.places(view, ops.index, [row for one in found for row in (one.first, one.second)]),
        evidence=(
            trace_evidence.evidence(ops.trace, "product_ratio", share.ratio, "ratio", params.min_ratio),
            Evidence(metric="left_ratio", value=largest.left, unit="ratio", threshold=params.max_left),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, saved, low=share.low * part, high=share.high, basis="modelled"),
        remedies=(
            Remedy(
                id="other-order",
                text="multiply the last two first: A (B C) instead of (A B) C, as in tf.matmul(q, tf.matmul(k, v, "
                "transpose_a=True)) for attention without a softmax",
                safety="review",
            ),
        ),
        explanation="The graph shows the shapes of both products and that at most a scaling lies between them; the op "
        "trace shows their time and that of their gradients. The saving of the other order is counted in "
        "multiplications.",
    )


DETECTOR = Detector(
    code="GRF013",
    name="products-in-wrong-order",
    cause="Model: inefficient model structure",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
