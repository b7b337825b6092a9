"""Sequences are padded to a length that few of them have, and the step computes on the padding.

## What it detects
Integer sequences, in arrays given to `fit` or `Dataset.from_tensor_slices`, that on average use less than 40 % of the
positions to which all of them are padded, in a job whose compiled step works on all positions.

## Why it matters
Recurrent layers, convolutions and attention compute on padding as they do on words; a mask changes the result but not
the time. A batch needs no more positions than its longest sequence.

## Evidence
`used_positions`: mean number of positions that 256 sequences use, of `columns`. `used_ratio`: 1.25 x `used_positions`,
as a share of `columns`; the extra quarter allows for bucket lengths. `call_ratio`: share of the steady wall time in the
compiled step. From an op trace: `padded_ratio`, share of the steps in ops on tensors with that many positions,
including loops over them.

## Known limits
Only arrays are examined, not datasets that pad by themselves (`padded_batch`, `TextVectorization`). The saving is
modelled, for batches of similar lengths: a batch of mixed lengths needs the positions of its longest sequence (the
lower bound uses the length that 95 % do not exceed); attention, whose time grows with the square of the positions,
saves more. Of matrices only those of integers count: matrices of floats with that many columns are mostly outputs of a
layer of that width.

## Remedy
Batches of similar lengths, each padded to one of a few lengths so that the step is not traced for each
(`Dataset.bucket_by_sequence_length`), or a smaller `maxlen`.

## References
TensorFlow: Dataset.bucket_by_sequence_length; Keras: pad_sequences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.index import CALLING
from stepscope.detectors.base import CaptureRequest, Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern, trace_evidence
from stepscope.model.log.program import Padding
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.derive.optrace.node_costs import NodeCosts
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.graph import TensorSpec


LISTS = frozenset({"TensorListFromTensor", "TensorListStack", "TensorListReserve", "While", "StatelessWhile"})
"""Ops that split positions or iterate over them."""
MATRIX = 2
"""Dimensions of a batch of sequences."""
WORDS = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"})
"""Types of words and their mask."""


BUCKETS = 1.25
"""Positions that a batch of similar lengths needs, over their mean: buckets are powers of two, or steps."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    max_used_ratio: Ratio = Ratio(0.5)
    """Share of the positions used, in batches of similar lengths."""
    min_ratio: Ratio = Ratio(0.2)
    """Share of the steps in ops on padded tensors."""


class _Cost(Struct, frozen=True, kw_only=True):
    """Cost of the padding."""

    padded: float
    """Share of the steps in ops on all positions."""
    ratio: float
    """Share of the steps spent on padding."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | CaptureRequest]:
    """Yield at most one finding."""
    anatomy = view.anatomy
    seen = view.worker.all(Padding)
    padded = min((p for p in seen if _used(p) <= params.max_used_ratio), key=_used, default=None)
    if padded is None:
        return

    def weigh(ops: NodeCosts, rows: list[int]) -> _Cost:
        ratio = anatomy.ratio("call") * _part(ops, rows)
        return _Cost(padded=ratio, ratio=ratio * (1 - _used(padded)))

    yield from graph_pattern.price(
        view,
        graph_pattern.whole(lambda index: _on_positions(index, padded.columns)),
        params.min_ratio,
        ask=lambda _: f"sequences are padded to {padded.columns} positions",
        weigh=weigh,
        see=lambda ops, _, cost: _finding(view, ops, padded, cost, params),
    )


def _used(padded: Padding) -> float:
    """Share of the positions used, if batches hold sequences of similar lengths."""
    return min(1.0, BUCKETS * padded.mean / padded.columns)


def _part(ops: NodeCosts, rows: list[int]) -> float:
    """Share of the time of all ops of the steps."""
    every = ops.of_nodes(range(len(ops.index.table))).high
    return min(1.0, ops.of_nodes(rows, gradients=True).high / every) if every > 0 else 0.0


def _on_positions(index: GraphIndex, columns: int) -> list[int]:
    """Nodes of steps on that many positions, and all nodes in loops over them: RNNs split lists of positions."""
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

    Matrices count only if they hold words or their mask: a matrix of floats is a layer's output, or its weights. The
    last dimension of larger tensors is a layer's width, unless another one is the positions.
    """
    shape = spec.shape
    if shape is None:
        return False
    return columns in (shape[:-1] if len(shape) > MATRIX else shape) and (len(shape) > MATRIX or spec.dtype in WORDS)


def _finding(view: StepsView, ops: NodeCosts, padded: Padding, cost: _Cost, params: Params) -> Seen:
    return Seen(
        title=f"sequences are padded to {padded.columns} positions but use {padded.mean:.0f} of them on average: "
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
                text="batch sequences of similar lengths, padded to one of a few lengths: "
                f"Dataset.bucket_by_sequence_length; or a maxlen of about {padded.p95:.0f}, which 95 % do not exceed",
            ),
        ),
        explanation="The lengths are those of some hundred sequences of the array that the program pads or trains on. "
        "A mask keeps padding out of the result, not out of the computation.",
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
