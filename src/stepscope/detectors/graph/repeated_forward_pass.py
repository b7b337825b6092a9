"""The step computes the same part of a model twice on the same input.

## What it detects
Products and convolutions of the compiled step that another part of the same graph also computes - the same ops, the
same weights, the same input - taking a large part of the step: a model that is called once for the loss and again for
each metric, or one model for each layer whose output a loss uses, all of which begin with the same layers.

## Why it matters
A forward pass is a third of a training step. TensorFlow merges equal ops, but not ops that read variables: each call of
the model reads its weights again, so all of it runs again.

## Evidence
From the graph: nodes that compute what others compute. From an op trace, or without one from the shapes in the graph:
`repeated_ratio`, share of the steps in these nodes and in their gradients; `repeated_products`, the number of products
and convolutions among them.

## Known limits
A second pass after the weight update sees the new weights. It is reported only if metrics alone use it. With the first
pass's result they describe the old weights, as Keras' own metrics do. If its result is returned, or differentiated
(sharpness-aware minimisation), it is not reported. Layers after a dropout differ between passes and are not counted.
Updates inside called functions are not seen.

## Remedy
Keep the result of the first call and pass it to the metrics: `accuracy.update_state(y, logits)`. If several layers'
outputs are needed, one model with all of them: `keras.Model(inputs, [a.output, b.output])`.

## References
Keras guide "Writing a training loop from scratch"; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import repeated_forward_pass
from stepscope.causes.job import purpose
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.repeated_forward_pass import Copy
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all copies of a step."""
    yield from graph_pattern.price_work(
        view,
        graph_pattern.whole(repeated_forward_pass.build),
        params.min_ratio,
        ask=lambda found: (
            f"{sum(len(one.heavy) for one in found):,} products of the step's graph are also computed elsewhere in it"
        ),
        weigh=_share,
        see=lambda ops, found, share: _finding(view, ops, found, share, params),
    )


def _finding(view: SessionView, ops: OpCosts, found: Sequence[Copy], share: OpShare, params: Params) -> Seen:
    heavy = [row for one in found for row in one.heavy]
    ratio = share.ratio
    return Seen(
        title=f"the step runs the same forward pass {_times(found)} on the same input, {_counted(len(heavy))}: "
        f"{format_ratio(ratio)} of the step",
        confidence=0.85,
        introduced_stage="training" if view.get(purpose.trains) else "prediction",
        where=graph_pattern.places(view, ops.index, heavy),
        evidence=(
            trace_evidence.evidence(ops.trace, "repeated_ratio", ratio, "ratio", params.min_ratio),
            Evidence(metric="repeated_products", value=len(heavy), unit="ops"),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, ratio, low=share.low, high=share.high),
        remedies=(
            Remedy(
                id="reuse-result",
                text="call the model once and pass its result to the loss and to every metric, as in "
                "accuracy.update_state(y, logits); for outputs of several layers make one model that returns them all",
                safety="review",
            ),
        ),
        explanation="Nodes of the graph that have the same type, read the same variables and get the same inputs "
        "compute the same. A second pass after the weight update sees the new weights and is reported only if metrics "
        "alone use it: with the first pass's result they describe the old weights, as Keras' own metrics do. "
        + trace_evidence.source(ops),
    )


def _share(ops: OpCosts, found: Sequence[Copy]) -> OpShare:
    """With gradients if both passes have some: they are summed before they reach the pass that stays."""
    gradients = all(one.differentiated for one in found)
    return ops.of_nodes([row for one in found for row in one.nodes], gradients=gradients)


def _times(found: Sequence[Copy]) -> str:
    runs = 1 + max(Counter(row for one in found for row in one.originals).values())
    return "twice" if runs == 1 + 1 else f"{runs:,} times"


def _counted(count: int) -> str:
    return "a product or convolution" if count == 1 else f"{count:,} products and convolutions"


DETECTOR = Detector(
    code="GRF014",
    name="repeated-forward-pass",
    cause="API: inefficient API usage",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
