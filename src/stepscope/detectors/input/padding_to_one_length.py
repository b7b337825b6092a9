"""Sequences are padded to a length that hardly any of them has, and the step computes on the padding.

## What it detects
Integer sequences, in arrays that `fit` or `Dataset.from_tensor_slices` is given, that use less than 40 % of the
positions which all of them were padded to, in the mean, in a job whose compiled step works on all positions.

## Why it matters
Recurrent layers, convolutions and attention compute on padding as they do on words, and a mask changes the result but
not the time. A batch needs no more positions than its longest sequence has.

## Evidence
`used_positions`: what 256 sequences use in the mean, of `columns`. `used_ratio`: of the positions, with a quarter of
that mean added, as lengths come in steps. `call_ratio`: share of the steady wall time in the compiled step. From an
op trace: `padded_ratio`, share of the steps in ops on tensors with that many positions, loops over them included.

## Known limits
Looked at are arrays, not datasets that pad by themselves (`padded_batch`, `TextVectorization`). What is saved is
modelled, for batches of like lengths: one of mixed lengths needs the positions of its longest sequence (the lower bound
has what 95 % use); attention, whose time rises with the square of the positions, saves more. Of
matrices only those of integers count: floats of that many columns are mostly what a layer gives that is as wide.

## Remedy
Batches of like lengths, each padded to one of a few lengths so that the step is not traced for each
(`Dataset.bucket_by_sequence_length`), or a smaller `maxlen`.

## References
TensorFlow: Dataset.bucket_by_sequence_length; Keras: pad_sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive.graph.index import CALLING
from stepscope.detectors import graph_pattern, trace_evidence
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.model.log.program import Padding
from stepscope.model.report.finding import Evidence, Remedy
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts
    from stepscope.derive.view import SessionView
    from stepscope.model.log.graph import TensorSpec


LISTS = frozenset({"TensorListFromTensor", "TensorListStack", "TensorListReserve", "While", "StatelessWhile"})
"""What takes positions apart, and goes through them."""
MATRIX = 2
"""Dimensions of a batch of sequences."""
WORDS = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"})
"""What words and their mask are made of."""


BUCKETS = 1.25
"""What a batch of sequences of like lengths needs, against their mean: buckets are some powers of two, or steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    max_used_ratio: Ratio = Ratio(0.5)
    """Of the positions, by batches of sequences of like lengths."""
    min_ratio: Ratio = Ratio(0.2)
    """Of the steps, in ops on padded tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What padding costs."""

    padded: float
    """Share of the steps in ops on all positions."""
    ratio: float
    """Share of the steps that goes to padding."""


def detect(view: SessionView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding."""
    anatomy = view.anatomy
    seen = view.worker.all(Padding) if view.worker is not None else []
    padded = min((p for p in seen if _used(p) <= params.max_used_ratio), key=_used, default=None)
    if padded is None or anatomy is None:
        return

    def weigh(ops: NodeCosts, rows: list[int]) -> _Cost:
        ratio = anatomy.ratio("call") * _part(ops, rows)
        return _Cost(padded=ratio, ratio=ratio * (1 - _used(padded)))

    yield from graph_pattern.price(
        view,
        graph_pattern.whole(lambda index: _on_positions(index, padded.columns)),
        params.min_ratio,
        ask=lambda _: f"sequences are padded to {padded.columns} positions; what the step does with them",
        weigh=weigh,
        see=lambda ops, _, cost: _finding(view, ops, padded, cost, params),
    )


def _used(padded: Padding) -> float:
    """Of the positions, where batches hold sequences of like lengths."""
    return min(1.0, BUCKETS * padded.mean / padded.columns)


def _part(ops: NodeCosts, rows: list[int]) -> float:
    """Of the time of all ops of the steps."""
    every = ops.of_nodes(range(len(ops.index.table))).high
    return min(1.0, ops.of_nodes(rows, gradients=True).high / every) if every > 0 else 0.0


def _on_positions(index: GraphIndex, columns: int) -> list[int]:
    """Nodes of steps on as many positions, and all within loops over them: RNNs take lists of positions apart."""
    table = index.table
    found: set[int] = set()
    for row in range(len(table)):
        if index.of_data(int(table.graph[row])):
            continue
        given = any(int(i) in found for i in table.inputs_of(row))
        passed = given and table.type_of(row) in LISTS
        if not (passed or _has(index, row, columns)):
            continue
        found.add(row)
        if table.type_of(row) in CALLING:
            found.update(r for _, inner in index.called_by(row) for r in index.inside(inner))
    return sorted(found)


def _has(index: GraphIndex, row: int, columns: int) -> bool:
    return any(_in_positions(spec, columns) for spec in index.table.specs_of(row))


def _in_positions(spec: TensorSpec, columns: int) -> bool:
    """Whether one dimension of a tensor is the positions. A layer may be as wide as the sequences are long.

    Of a matrix only that of the words and their mask counts: a matrix of floats is what a layer gives, or its weights.
    The last dimension of more is a layer's width, unless another one is the positions.
    """
    shape = spec.shape
    if shape is None:
        return False
    return columns in (shape[:-1] if len(shape) > MATRIX else shape) and (len(shape) > MATRIX or spec.dtype in WORDS)


def _finding(view: SessionView, ops: NodeCosts, padded: Padding, cost: _Cost, params: Params) -> Seen:
    return Seen(
        title=f"sequences are padded to {padded.columns} positions, and use {padded.mean:.0f} of them in the mean: "
        f"{format_ratio(cost.ratio)} of the time goes to padding",
        confidence=0.7,
        where=(view.place(padded.file, padded.line, function=padded.function),) if padded.file else (),
        evidence=(
            Evidence(metric="used_ratio", value=_used(padded), unit="ratio", threshold=params.max_used_ratio),
            Evidence(metric="used_positions", value=padded.mean, unit="positions"),
            Evidence(metric="columns", value=padded.columns, unit="positions"),
            trace_evidence.evidence(ops.trace, "padded_ratio", cost.padded, "ratio"),
        ),
        cost=cost_of(
            view,
            cost.ratio,
            low=cost.padded * max(0.0, 1 - padded.p95 / padded.columns),
            high=cost.padded,
            basis="modelled",
        ),
        remedies=(
            Remedy(
                id="bucket-by-length",
                text="make batches of sequences of like lengths, padded to one of a few: "
                f"Dataset.bucket_by_sequence_length; or a maxlen of about {padded.p95:.0f}, which 95 % do not exceed",
            ),
        ),
        explanation="The lengths are those of some hundred sequences of the array that the program was given to pad or "
        "to train on. A mask keeps padding out of the result, not out of the computation.",
    )


DETECTOR = Detector(
    code="INP008",
    name="padding-to-one-length",
    cause="Data: improper data input",
    introduced_stage="data preparation",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
