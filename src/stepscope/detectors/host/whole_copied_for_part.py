"""Code that runs op by op copies a whole variable or tensor to read, change or append a small part of it.

## What it detects
Ops run from Python that copy a large tensor and compute nothing, of whose result all users take a part: a slice of a
`tf.Variable`, which reads the variable first; a tensor that is concatenated with a few rows, or updated in a few rows,
again and again.

## Why it matters
The copy costs memory bandwidth and fresh memory in proportion to the whole, whatever the size of the part.

## Evidence
`copy_ratio`: share of the time of the looks at the ops (`looks`) in these copies. `whole_bytes`, `part_bytes`: size of
the largest result, and of the largest part of it that is used or changed. `copies`: their number in the looks.

## Known limits
Reading a variable copies nothing as long as it was never written by rows: such reads take no time and are not reported.
Copies by NumPy (`np.append`, `variable.numpy()[rows]`) are Python of the loop. What a compiled function copies is in
its graph.

## Remedy
Read rows with `tf.gather(variable, rows)`, write them with `scatter_update` or `scatter_nd_update`: both touch only the
rows. Or keep the buffer in a NumPy array. Collect pieces in a list or a `tf.TensorArray`, and join them once.

## References
TensorFlow documentation of ResourceVariable (copy-on-read mode); FSE'22 study, inefficient API usage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import eager_looks
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.python.eager_looks import EagerLooks
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.eager import EagerOp

READ = "ReadVariableOp"
APPENDS = "ConcatV2"
FREED = 1.4
"""What a copy takes at most, in times of the op that makes it: its memory is given back afterwards."""


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.05)
    """Of the time of the looks."""
    min_copies: int = 4
    """In all looks: fewer may be the work of an epoch's end."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    looks = view.get(eager_looks.build)
    if looks is None:
        return
    rows = sorted((row for row in looks.rows if row.part), key=lambda row: -row.part_ns)
    ratio = looks.ratio(lambda row: row.part_ns, rows)
    if ratio >= params.min_ratio and sum(row.part for row in rows) >= params.min_copies:
        yield _finding(view, looks, rows, ratio, params)


def _finding(view: StepsView, looks: EagerLooks, rows: Sequence[EagerOp], ratio: float, params: Params) -> Seen:
    top = rows[0]
    place = view.place(top.file, top.line, function=top.function)
    copies = sum(row.part for row in rows)
    each = sum(row.part_ns for row in rows) / copies
    size, part = format_bytes(top.bytes), format_bytes(top.part_bytes)
    what, remedy = _words(top, size, part)
    at = f" at {place.file}:{place.line}" if top.file else ""
    return Seen(
        title=f"{what}{at}: {format_ratio(ratio)} of the time",
        confidence=0.9,
        where=tuple(dict.fromkeys(view.place(r.file, r.line, function=r.function) for r in rows[:12] if r.file)),
        evidence=(
            Evidence(metric="copy_ratio", value=ratio, unit="ratio", threshold=params.min_ratio),
            Evidence(metric="copies", value=copies, unit="copies", threshold=params.min_copies),
            Evidence(metric="copy_ns", value=each, unit="ns"),
            Evidence(metric="whole_bytes", value=top.bytes, unit="bytes"),
            Evidence(metric="part_bytes", value=top.part_bytes, unit="bytes"),
            Evidence(metric="looks", value=looks.looks, unit="looks"),
        ),
        cost=cost_of(view, ratio, low=0.8 * ratio, high=FREED * ratio),
        remedies=(remedy,),
        explanation="The ops of some seconds were followed from each large result to those that use it.",
    )


def _words(row: EagerOp, size: str, part: str) -> tuple[str, Remedy]:
    if row.op == READ:
        return f"reading a part of a variable copies the whole variable, {size} for {part}, each time", Remedy(
            id="gather-rows",
            text="read rows with tf.gather(variable, rows) and write them with scatter_update or scatter_nd_update, "
            "without slicing the variable (variable[a:b] reads all of it); or keep the buffer in a NumPy array",
        )
    if row.op == APPENDS:
        return f"appending {part} to a tensor copies the whole tensor, {size}, each time", Remedy(
            id="append-once",
            text="collect the pieces in a list and concatenate them once, or write them into a buffer of full size "
            "(a NumPy array; a tf.Variable with scatter_update)",
        )
    return f"{row.op} copies the whole of a tensor, {size}, of which {part} are used or changed, each time", Remedy(
        id="touch-a-part",
        text="work on the part alone: take it before the copy, or keep the whole in a tf.Variable (scatter_update) or "
        "a NumPy array, which are changed in place",
    )


DETECTOR = Detector(
    code="HST016",
    name="whole-copied-for-part",
    cause="Data: inefficient data transmission",
    introduced_stage="data preparation",
    pipeline_stage="raw-input",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
    applies=eager_looks.missing,
)
