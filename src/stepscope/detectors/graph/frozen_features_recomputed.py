"""Each epoch recomputes the same features of the same examples: untrained layers on the unaugmented batch.

## What it detects
Keras' `fit` in which products and convolutions with frozen weights, on the batch as the dataset yields it, take a large
part of the step, while the same examples come in every epoch: a pretrained base with `trainable` off, under a new head,
and no augmentation.

## Why it matters
A frozen base gives each example the same features in every epoch. If they are computed once, only the head remains to
be trained: small layers on small arrays.

## Evidence
From the graph: products that depend on the batch and on weights that nothing writes, through deterministic ops.
`frozen_ratio`: share of the traced steps (without a trace: of the work by shapes) in these nodes, in those that prepare
the batch for them, and in those that depend on them alone. `saved_ratio`: the same without the first pass.
`frozen_products`: the number of products and convolutions among them. `passes`: observed passes over the same data.

Measured (bench/cases/75-frozen-encoder, 20 epochs, TensorFlow 2.21, a single run with other work on the machine): 2.8x
faster (65 % saved); predicted 64 to 74 %.

## Known limits
Only for `fit` with datasets, and in Keras 3 also with arrays (Keras 2 makes one iterator of all passes over arrays): in
custom loops the graph does not say whether its arguments are the dataset's. The dataset that feeds the steps must be
known: by tf.data's model (TensorFlow 2.17) or an op trace. Data from Python (generators, `PyDataset`, `py_function`)
may be augmented there: nothing is reported. Anything random in the functions of any dataset of the process counts as
augmentation. An op trace is requested automatically only if the second pass has begun when the graphs are read, early
in the run; without a trace nothing is reported. Under XLA no ops are seen. Weights that Python sets outside graphs (a
teacher updated at the end of each epoch) look frozen. Layers that another graph trains (fine-tuning after the first
`fit`) do not. A frozen net that the step also applies to something other than the batch (a loss that applies it to the
model's output) cannot be removed. The cost counts only the observed passes, so it is too low for a long training; ops
of a validation with the same names count as the step's; the time to read features instead of examples is not
subtracted.

## Remedy
Compute the features once, `features = base.predict(data)`, and train the head on them; or map the dataset through the
frozen base and `cache()` after it. For inference put both into one model again.

## References
Keras guide "Transfer learning & fine-tuning": "An alternative, lightweight workflow"; FSE'22 study, inefficient API
usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import frozen_features_recomputed
from stepscope.causes.input import same_data
from stepscope.derive.graph import step_graphs
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.frozen_features_recomputed import FrozenLayers
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.20)
    """Of the traced steps: keeping features takes memory and a change of the program."""
    min_passes: int = 2
    """Over the same data: before the second pass nothing is recomputed."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all frozen layers of a step."""
    steps, passes = view.steps, same_data.passes(view)
    if passes < params.min_passes:
        return
    yield from graph_pattern.price_work(
        view,
        graph_pattern.whole(lambda index: frozen_features_recomputed.build(index, step_graphs.build(steps))),
        params.min_ratio,
        ask=lambda found: f"{len(found.heavy):,} products of frozen layers work on the unaugmented batch",
        weigh=lambda ops, found: ops.of_nodes(found.nodes),
        see=lambda ops, found, share: _finding(view, ops, found, share, passes, params),
    )


def _finding(view: StepsView, ops: OpCosts, found: FrozenLayers, share: OpShare, passes: int, params: Params) -> Seen:
    again = 1 - 1 / passes
    saved = share.ratio * again
    return Seen(
        title=f"frozen layers recompute the same features of the same examples in every epoch: {_counted(found)} with "
        f"weights that are never updated, {format_ratio(share.ratio)} of the step",
        confidence=0.8,
        where=graph_pattern.places(view, ops.index, found.heavy),
        evidence=(
            trace_evidence.evidence(ops.trace, "frozen_ratio", share.ratio, "ratio", params.min_ratio),
            Evidence(metric="saved_ratio", value=saved, unit="ratio"),
            Evidence(metric="frozen_products", value=len(found.heavy), unit="ops"),
            Evidence(metric="passes", value=passes, unit="passes", threshold=params.min_passes),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, saved, low=share.low * again, high=share.high, basis="modelled"),
        remedies=(
            Remedy(
                id="features-once",
                text="compute the features of the frozen layers once, with base.predict(data) or with cache() after a "
                "map that runs them, and train only the head on them",
                safety="review",
            ),
        ),
        explanation="The graph of the step shows products whose weights nothing writes and whose data are the batch as "
        "the dataset yields it, through deterministic ops; the dataset's functions contain nothing random, and the "
        "same data came in more than one pass. " + trace_evidence.source(ops),
    )


def _counted(found: FrozenLayers) -> str:
    count = len(found.heavy)
    return "a product or convolution" if count == 1 else f"{count:,} products and convolutions"


DETECTOR = Detector(
    code="GRF017",
    name="frozen-features-recomputed",
    cause="API: inefficient API usage",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
