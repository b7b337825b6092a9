"""Metrics that are updated in each training step take a large part of it.

## What it detects
Ops of the compiled training step that only feed a metric's counters - neither the loss nor a gradient, nor any output
of the step, needs them - and that take 15 % of the step or more: an AUC that compares each prediction with hundreds of
thresholds, a confusion matrix of every pixel.

## Why it matters
A metric on the training data is read once an epoch but computed in each step. Validation computes the same on the data
that matter, in a fraction of the steps.

## Evidence
From the graph: nodes that serve only metrics. From an op trace: `metric_ratio`, share of the steps in them;
`metric_ops`, their number.

## Known limits
Metrics computed in called functions, or eagerly, are not seen. Work that a metric shares with the loss is not counted.
Other counters of the program (how often a class was seen) look the same and are named by their variables; those that
take part in gradients (a codebook, a bank of features) are not counted. A forward pass that is run again for a metric
is GRF014's.

## Remedy
Measure it on validation data only (`evaluate`, or a callback each epoch); for AUC use `num_thresholds` instead of a
list of thresholds: evenly spaced thresholds are counted in buckets, whatever their number.

## References
Keras, AUC and metrics_utils.update_confusion_matrix_variables (`thresholds_distributed_evenly`); FSE'22 study,
inefficient API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.causes.graph import costly_metrics, repeated_forward_pass
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.causes.graph.costly_metrics import MetricWork
    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts, OpShare
    from stepscope.derive.view import SessionView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.15)
    """Of the traced steps. Accuracy and averages take a few percent of the steps of small models."""
    named_ratio: Ratio = Ratio(0.25)
    """Share of the time of all metrics below which a metric is not named."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding: all metrics of a step."""
    yield from graph_pattern.price(
        view,
        graph_pattern.whole(_metric_work),
        params.min_ratio,
        ask=lambda _: "",
        weigh=lambda ops, found: ops.of_nodes(_nodes(found)),
        see=lambda ops, found, share: _finding(view, ops, found, share, params),
    )


def _metric_work(index: GraphIndex) -> tuple[MetricWork, ...]:
    """Without passes that the step has run already: their remedy is another one."""
    found = costly_metrics.build(index)
    again = {row for copy in repeated_forward_pass.build(index) for row in copy.nodes} if found else set[int]()
    own = (replace(one, nodes=tuple(row for row in one.nodes if row not in again)) for one in found)
    return tuple(one for one in own if one.nodes)


def _nodes(found: Sequence[MetricWork]) -> list[int]:
    return sorted({row for one in found for row in one.nodes})


def _finding(view: SessionView, ops: NodeCosts, found: Sequence[MetricWork], share: OpShare, params: Params) -> Seen:
    nodes = _nodes(found)
    each = {one.name: ops.of_nodes(one.nodes).ratio for one in found}
    named = [name for name, ratio in each.items() if name and ratio >= params.named_ratio * share.ratio]
    names = ", ".join(sorted(named, key=lambda name: -each[name]))
    who = f"metrics ({names})" if names else "metrics or counters"
    return Seen(
        title=f"{who} take {format_ratio(share.ratio)} of the training step; nothing else uses these ops",
        confidence=0.85,
        where=_places(view, ops, sorted(named, key=lambda name: -each[name]), nodes),
        evidence=(
            trace_evidence.evidence(ops.trace, "metric_ratio", share.ratio, "ratio", params.min_ratio),
            Evidence(metric="metric_ops", value=len(nodes), unit="ops"),
            trace_evidence.steps(ops.trace),
        ),
        cost=cost_of(view, share.ratio, low=share.low, high=share.high),
        remedies=(
            Remedy(
                id="metric-on-validation",
                text="compute it on validation data only, or once in many steps; give an AUC num_thresholds instead of "
                "a list of thresholds: it then counts in buckets, which is much cheaper",
                safety="review",
            ),
        ),
        explanation="The results of these nodes go only into the metrics' own variables; neither the loss nor a "
        "gradient uses them. The op trace shows their time.",
    )


def _places(view: SessionView, ops: NodeCosts, metrics: Sequence[str], nodes: Sequence[int]) -> tuple[Place, ...]:
    """Lines that made the metrics, if known, then lines of code outside layers."""
    made = {layer.name: layer for layer in ops.index.layers.values() if layer.line}
    built = [made[name.partition("/")[0]] for name in metrics if name.partition("/")[0] in made]
    places = [view.place(layer.file, layer.line, function=layer.function) for layer in built]
    free = [row for row in nodes if ops.index.maker_of(row)[1] is None]
    return tuple(dict.fromkeys([*places, *graph_pattern.places(view, ops.index, free)]))


DETECTOR = Detector(
    code="GRF018",
    name="costly-metrics",
    cause="API: inefficient API usage",
    introduced_stage="training",
    pipeline_stage="output-processing",
    needs=frozenset({Signal.STEPS, Signal.NODES, Signal.OP_TRACE}),
    params=Params(),
    detect=detect,
)
