"""Sequences are padded to a length that hardly any of them has, and the step computes on the padding.

## What it detects
Integer sequences, in arrays that `fit` or `Dataset.from_tensor_slices` is given, of which 95 % use no more than a third
of the positions that all of them were padded to, in a job whose compiled step works on all positions.

## Why it matters
Recurrent layers, convolutions and attention compute on padding as they do on words, and a mask changes the result but
not the time. A batch needs no more positions than its longest sequence has.

## Evidence
`used_positions`: what 95 % of 256 sequences use at most, of `columns`. `call_ratio`: share of the steady wall time
in the compiled step. From an op trace: `padded_ratio`, share of the steps in ops on tensors with that many positions,
loops over them included.

## Known limits
Looked at are arrays, not datasets that pad by themselves (`padded_batch`, `TextVectorization`). What is saved is
modelled: the positions beyond those that 95 % use; attention, whose time rises with their square, saves more. Of
matrices only those of integers count: floats of that many columns are mostly what a layer gives that is as wide.

## Remedy
Pad each batch to its own longest sequence, in a few lengths so that the step is not traced for each
(`Dataset.bucket_by_sequence_length`, `padded_batch`), or a smaller `maxlen`.

## References
TensorFlow: Dataset.bucket_by_sequence_length; Keras: pad_sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.derive.graph_index import CALLING
from stepscope.detectors import noded, traced
from stepscope.detectors.base import CaptureRequest, Detector, Signal, Undecided, cost_of, severity_of
from stepscope.model.finding import Evidence, Finding, Remedy
from stepscope.model.program import Padding
from stepscope.units import Ratio, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.graph_index import GraphIndex
    from stepscope.derive.step_ops import StepOps
    from stepscope.derive.view import SessionView
    from stepscope.model.graph import TensorSpec


LISTS = frozenset({"TensorListFromTensor", "TensorListStack", "TensorListReserve", "While", "StatelessWhile"})
"""What takes positions apart, and goes through them."""
MATRIX = 2
"""Dimensions of a batch of sequences."""
WORDS = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"})
"""What words and their mask are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """Thresholds."""

    max_used_ratio: Ratio = Ratio(0.35)
    """Of the positions, by 95 % of the sequences."""
    min_ratio: Ratio = Ratio(0.2)
    """Of the steps, in ops on padded tensors."""


def detect(session: SessionView, params: Params) -> Iterator[Finding | Undecided | CaptureRequest]:
    """Yield at most one finding."""
    index, anatomy = session.graphs, session.anatomy
    seen = session.worker.all(Padding) if session.worker is not None else []
    padded = min((p for p in seen if p.p95 <= params.max_used_ratio * p.columns), key=_used, default=None)
    if padded is None or index is None or anatomy is None:
        return
    rows = _on_positions(index, padded.columns)
    if not rows:
        return
    if session.step_ops is None:
        yield noded.question(f"sequences are padded to {padded.columns} positions; what the step does with them")
        return
    ratio = anatomy.ratio("call") * _part(session.step_ops, rows)
    if ratio * (1 - _used(padded)) >= params.min_ratio:
        yield _finding(session, padded, ratio, params)


def _used(padded: Padding) -> float:
    return padded.p95 / padded.columns


def _part(ops: StepOps, rows: list[int]) -> float:
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


def _finding(session: SessionView, padded: Padding, ratio: float, params: Params) -> Finding:
    trace = session.op_traces.main
    used = _used(padded)
    saved = ratio * (1 - used)
    return Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        title=f"sequences are padded to {padded.columns} positions, and 95 % of them use {padded.p95:.0f} or fewer: "
        f"{format_ratio(saved)} of the time goes to padding",
        severity=severity_of(saved),
        confidence=0.7,
        symptom="Time: slow execution time",
        cause="Data: improper data input",
        introduced_stage="data preparation",
        exposed_stage="training" if session.trains else "prediction",
        pipeline_stage="forward-backward",
        where=(session.place(padded.file, padded.line, function=padded.function),) if padded.file else (),
        evidence=(
            Evidence(metric="used_ratio", value=used, unit="ratio", threshold=params.max_used_ratio),
            Evidence(metric="used_positions", value=padded.p95, unit="positions"),
            Evidence(metric="columns", value=padded.columns, unit="positions"),
            *([traced.evidence(trace, "padded_ratio", ratio, "ratio")] if trace is not None else []),
        ),
        cost=cost_of(session, saved, low=0.5 * saved, high=ratio, basis="modelled"),
        remedies=(
            Remedy(
                id="bucket-by-length",
                text="pad each batch to its own longest sequence, in a few lengths: Dataset.bucket_by_sequence_length, "
                f"or a maxlen of about {padded.p95:.0f}",
            ),
        ),
        explanation="The lengths are those of some hundred sequences of the array that the program was given to pad or "
        "to train on. A mask keeps padding out of the result, not out of the computation.",
    )


DETECTOR = Detector(
    code="INP008",
    name="padding-to-one-length",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
