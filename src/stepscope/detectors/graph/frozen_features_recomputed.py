"""Each epoch computes the same features of the same examples again: layers that are never trained, on the plain batch.

## What it detects
Keras' `fit` in which products and convolutions with frozen weights, on the batch as the dataset hands it out, take a
large part of the step, while the same examples come in every epoch: a pretrained base whose `trainable` is off, under a
new head, and no augmentation.

## Why it matters
A frozen base gives each example the same features in every epoch. Where they are computed once, what is left to train
is the head: small layers on small arrays.

## Evidence
From the graph: which products depend on the batch and on weights that nothing writes, by ops that give the same each
time. `frozen_ratio`: share of the traced steps in these nodes, what prepares the batch for them, and what is made of
them alone. `saved_ratio`: that, but for the first pass. `frozen_products`: how many of them are products and
convolutions. `passes`: over the same data, as far as they were seen.

Measured (bench/cases/75-frozen-encoder, 20 epochs, TensorFlow 2.21, a single run beside other work): 2.8 times faster;
said was that 64 to 74 % would be saved, and 65 % were.

## Known limits
Of `fit` with datasets, and in Keras 3 with arrays, only (Keras 2 makes one iterator of all passes over arrays): in
loops of one's own the graph does not say whether its arguments are the dataset's. Which dataset feeds the steps must
be known: by tf.data's model (TensorFlow 2.17) or an op trace. Data from Python (generators, `PyDataset`,
`py_function`) may be augmented there: nothing is said. Anything random in the functions of any dataset of the process
counts as augmentation. An op trace is asked for by itself only where the second pass has begun when the graphs are
looked at, early in the run; without a trace nothing is said. Under XLA no ops are seen. Weights that Python sets from
outside of graphs (a teacher that follows at the end of each epoch) look frozen; layers that another graph of the
process trains, a fine-tuning behind the first `fit`, do not. A net that the step also runs on something else, as a
loss does on the model's output, has to stay. The cost counts the passes that were seen, so of a long training it is
too low; ops of a validation by the same names count as the step's; that features are read instead of examples is not
subtracted.

## Remedy
Compute the features once, `features = base.predict(data)`, and train the head on them; or map the dataset through the
frozen base and `cache()` behind it. For inference put both into one model again.

## References
Keras guide "Transfer learning & fine-tuning": "An alternative, lightweight workflow"; FSE'22 study, inefficient API
usage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.causes.graph import frozen_features_recomputed
from stepscope.causes.input import same_data
from stepscope.derive.graph import step_graphs
from stepscope.detectors import graph_pattern, trace_evidence
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.frozen_features_recomputed import FrozenLayers
    from stepscope.derive.optrace.node_costs import NodeCosts, OpShare
    from stepscope.derive.view import SessionView


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.20)
    """Of the traced steps: to keep features takes memory and a change of the program."""
    min_passes: int = 2
    """Over the same data: before the second began there is nothing to compute again."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all frozen layers of a step."""
    steps, passes = view.steps, same_data.passes(view)
    if steps is None or passes < params.min_passes:
        return
    yield from graph_pattern.price(
        view,
        graph_pattern.whole(lambda index: frozen_features_recomputed.build(index, step_graphs.build(steps))),
        params.min_ratio,
        ask=lambda found: f"{len(found.heavy):,} products of frozen layers are made of the plain batch; their time",
        weigh=lambda ops, found: ops.of_nodes(found.nodes),
        see=lambda ops, found, share: _finding(view, ops, found, share, passes, params),
    )


def _finding(
    view: SessionView, ops: NodeCosts, found: FrozenLayers, share: OpShare, passes: int, params: Params
) -> Seen:
    again = 1 - 1 / passes
    saved = share.ratio * again
    return Seen(
        title=f"frozen layers compute the same features of the same examples in every epoch: {_counted(found)} with "
        f"weights that are never updated, {format_ratio(share.ratio)} of the step",
        confidence=0.8,
        where=graph_pattern.places(view, ops.index, found.heavy),
        evidence=(
            trace_evidence.evidence(ops.trace, "frozen_ratio", share.ratio, "ratio", params.min_ratio),
            Evidence(metric="saved_ratio", value=saved, unit="ratio"),
            Evidence(metric="frozen_products", value=len(found.heavy), unit="ops"),
            Evidence(metric="passes", value=passes, unit="passes", threshold=params.min_passes),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(view, saved, low=share.low * again, high=share.high, basis="modelled"),
        remedies=(
            Remedy(
                id="features-once",
                text="compute the features of the frozen layers once, with base.predict(data) or with cache() behind "
                "a map that runs them, and train the head alone on them",
                safety="review",
            ),
        ),
        explanation="The graph of the step shows products whose weights nothing writes and whose data are the batch as "
        "the dataset hands it out, by ops that give the same each time; the functions of the dataset hold nothing "
        "random, and the same data came in more than one pass. The op trace shows what these ops take.",
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
