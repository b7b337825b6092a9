"""Each call of the compiled step recomputes something that never changes.

## What it detects
Costly ops (products, solves, factorisations, convolutions, transforms, sorts, look-ups of many rows) of the compiled
step that depend only on tensors captured from outside the function, constants, and variables that neither a graph of
the process nor Python writes: the inverse of a fixed covariance, an orthogonalised basis, a table of positions; in a
loop that only predicts, anything computed from the weights alone.

## Why it matters
A `tf.function` is compiled once, but all of its ops run in each call. TensorFlow precomputes only what derives from
constants within the function; a captured tensor is an argument, which might differ in the next call.

## Evidence
From the graph: nodes that depend neither on the arguments nor on anything that is written. From an op trace:
`constant_ratio`, share of the steps in these nodes.

Measured on TensorFlow 2.21, both with other work on the machine: bench/cases/77-inverse-each-call 2.02x faster (50 % of
the step), predicted 49 %; a solve of weights in a loop that predicts 21x faster (95 %), predicted 89 %.

## Known limits
Ops of a few microseconds are missing from traces once they have run some 90 times. If Python itself sets a variable, in
a loop or function and outside any graph (`v.assign`, `set_weights`, an optimizer in eager code), no variable counts as
constant. Library code that does so is not seen. Work inside functions that read variables is not seen. Of sessions,
placeholders count as constant that runs feed the same array each time, by eight looks or more; variables never do.

## Remedy
Compute it once outside the function, where the tensor is made (`__init__`, `build`), and use the result; keep it in a
variable with `trainable=False` if it belongs into checkpoints, or changes occasionally.

## References
TensorFlow guide "Better performance with tf.function", captured tensors; FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph import constant_work_in_step
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.model.log.values import FeedsSeen
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.constant_work_in_step import ConstantWork
    from stepscope.derive.optrace.node_costs import OpShare
    from stepscope.derive.optrace.op_costs import OpCosts
    from stepscope.derive.view import SessionView

_NAMED = 2
"""Maximum number of op types in a title."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps."""
    min_elements: int = 1_000
    """Elements that a costly op works on: a matrix of 30 x 30 costs no more than starting its op."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all such work of a step."""
    yield from graph_pattern.price_work(
        view,
        graph_pattern.whole(
            lambda index: constant_work_in_step.build(index, view.session.sources, params.min_elements, _fed(view))
        ),
        params.min_ratio,
        ask=lambda _: "each call recomputes something that never changes",
        weigh=lambda ops, found: ops.of_nodes(found.nodes),
        see=lambda ops, found, share: _finding(view, ops, found, share, params),
    )


def _fed(view: SessionView) -> frozenset[str]:
    return constant_work_in_step.fed_the_same(view.worker.all(FeedsSeen)) if view.worker is not None else frozenset()


def _finding(view: SessionView, ops: OpCosts, found: ConstantWork, share: OpShare, params: Params) -> Seen:
    heavy = ops.costliest(found.heavy) or list(found.heavy)
    kinds = list(dict.fromkeys(ops.index.table.type_of(row) for row in heavy))[:_NAMED]
    return Seen(
        title=f"each call of the step recomputes the same {' and '.join(kinds)}, from values that never change: "
        f"{format_ratio(share.ratio)} of the step",
        confidence=0.85,
        where=graph_pattern.places(view, ops.index, heavy),
        evidence=(
            trace_evidence.evidence(ops.trace, "constant_ratio", share.ratio, "ratio", params.min_ratio),
            trace_evidence.basis(ops),
        ),
        cost=cost_of(view, share.ratio, low=share.low, high=share.high),
        remedies=(
            Remedy(
                id="compute-once",
                text="compute it once outside the compiled function, where these values are made, and use the result; "
                "if they change occasionally, keep it in a tf.Variable(trainable=False) and update that",
            ),
        ),
        explanation="These nodes of the graph read captured tensors, constants, and variables that nothing writes, "
        f"and no argument of the function: each call gets the same result. {trace_evidence.source(ops)}",
    )


DETECTOR = Detector(
    code="GRF019",
    name="constant-work-in-step",
    cause="API: inefficient API usage",
    introduced_stage="model building",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
