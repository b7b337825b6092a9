"""A dense layer on flattened feature maps has a weight so large that work on it dominates the step.

## What it detects
A `Flatten` of feature maps (or `tf.reshape`) before a matrix product with a weight of at least four million numbers, if
the ops on arrays of that weight's shape (product, gradient, optimizer) take a quarter of the step or more.

## Why it matters
Each position of the maps has its own weights: 64 x 64 positions of 16 channels into 256 units are 17 million. The
product is cheap compared with what training does with the weight: its gradient is as large, and Adam reads and writes
three arrays of that size in every step, however small the batch.

## Evidence
From the graph: `weight_elements`, and `positions` that were flattened. From an op trace: `weight_ratio`, share of the
steps in ops on all of the weight.

Measured (bench/cases/38-dense-after-flatten): TensorFlow 2.21: 13.9x faster with GlobalAveragePooling2D (93 % saved);
predicted 76 %. TensorFlow 2.15: predicted 77 %.

## Known limits
It depends on the model: pooling changes what the network can distinguish, for most images to its benefit. Output
weights of large vocabularies, which no Flatten feeds, are not included.

## Remedy
`GlobalAveragePooling2D` (or a convolution with strides, or `MaxPooling2D` down to a few positions) before the dense
layer; fewer units.

## References
FSE'22 study, improper model parameter: "Dense too large after Flatten" (Stack Overflow 58125788, 64191241).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import whole_arrays
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.whole_arrays import FlatProduct
    from stepscope.derive.optrace.node_costs import NodeCosts, OpShare
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.25)
    """Of the traced steps: the remedy changes the model, so it has to gain much."""
    min_elements: int = 4_000_000
    """Of the weight: 16 MB, and 48 MB more of gradient and moments, beyond the caches of a core."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: the costliest weight."""
    yield from graph_pattern.price(
        view,
        lambda index: list(whole_arrays.flat_products(index, params.min_elements)),
        params.min_ratio,
        ask=lambda one: f"a dense layer on flattened maps has {one.weight.elements:,} weights",
        weigh=lambda ops, one: ops.of_nodes(one.nodes),
        see=lambda ops, one, share: _finding(view, ops, one, share, params),
    )


def _finding(view: SessionView, ops: NodeCosts, found: FlatProduct, share: OpShare, params: Params) -> Seen:
    saved = share.ratio * (1 - 1 / found.places)
    return Seen(
        title=f"a dense layer on flattened maps of {found.places:,} positions has {found.weight.elements:,} weights: "
        f"work on them takes {format_ratio(share.ratio)} of the step",
        confidence=0.75,
        where=graph_pattern.places(view, ops.index, [found.product]),
        evidence=(
            trace_evidence.evidence(ops.trace, "weight_ratio", share.ratio, "ratio", params.min_ratio),
            Evidence(metric="weight_elements", value=found.weight.elements, unit="elements"),
            Evidence(metric="positions", value=found.places, unit="positions"),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(view, saved, low=share.low * (1 - 1 / found.places), high=share.high),
        remedies=(
            Remedy(
                id="pool-before-dense",
                text="put GlobalAveragePooling2D, or pooling and strides down to a few positions, before the dense "
                "layer; or use fewer units",
            ),
        ),
        explanation="Ops on the weight are those that make or read arrays of its shape: product, gradient, optimizer.",
    )


DETECTOR = Detector(
    code="GRF011",
    name="oversized-weight-after-flatten",
    cause="Model: improper model parameter",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
