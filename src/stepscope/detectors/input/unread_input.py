"""Each batch holds bytes that no op of the step reads.

## What it detects
Steps that are given batches of which they read at most seven tenths of the bytes: the rest are tensors that no op of
the step takes, or parts of tensors from which all ops only select. Reported where making and handing over these bytes
takes a twentieth of the time: steps wait for the input, or the job's CPUs are full.

## Why it matters
What is not read is decoded, copied into the batch, kept in buffers, and sent to the device all the same: memory, copies
and CPU time grow with what is handed over, not with what is used.

## Evidence
From the graphs of the steps: `read_bytes` of the `batch_bytes` that tf.data says a batch has. From tf.data's model:
`stage_ratio`, share of the time that the stages which hold these bytes take for them, modelled.

## Known limits
What user Python reads of a batch outside of a tf.function is not seen; nor are eager steps, strings, and tensors of
open sizes (they count as read). An op that takes a whole tensor reads all of it here, whatever it does with it. How
much of a map's time goes into the unread bytes is modelled: between one copy of them, and their share of its bytes.

## Remedy
Hand over what the step reads: select it, or leave the feature out, in the map before `batch()`, or do not read it from
the files at all.

## References
Training-pipeline analysis (Rand 2020), the case of frames ten times as large; FSE'22 study, inefficient data
transmission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.input import unread_input
from stepscope.detectors.base import Detector, Seen, Signal, cost_of
from stepscope.detectors.shared import graph_pattern
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_bytes, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.graph.read_parts import ReadPart
    from stepscope.causes.input.unread_input import UnreadInput
    from stepscope.derive.steps_view import StepsView
    from stepscope.tables.place import Place


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_unread_ratio: Ratio = Ratio(0.3)
    """Of the bytes of a batch: some features are kept for another use of the same data set."""
    min_ratio: Ratio = Ratio(0.05)
    """Of the steps' time: a map that discards bytes takes some time, too."""


def detect(view: StepsView, params: Params) -> Iterator[Seen]:
    """Yield at most one finding."""
    found = view.get(unread_input.build)
    if found is None or found.unread_ratio < params.min_unread_ratio or found.ratio < params.min_ratio:
        return
    places = _places(view, found)
    read = found.batch_bytes - found.unread_bytes
    yield Seen(
        title=f"the step reads {format_bytes(read)} of each batch of {format_bytes(found.batch_bytes)} "
        f"({_part(found.parts[0])}): making and handing over the other bytes takes {format_ratio(found.ratio)} of the "
        "time",
        confidence=0.7,
        where=places,
        evidence=(
            Evidence(metric="read_bytes", value=read, unit="bytes"),
            Evidence(metric="batch_bytes", value=found.batch_bytes, unit="bytes"),
            Evidence(
                metric="unread_ratio",
                value=found.unread_ratio,
                unit="ratio",
                threshold=params.min_unread_ratio,
                refs=("component:input-wait",),
            ),
            Evidence(metric="stage_ratio", value=found.ratio, unit="ratio", threshold=params.min_ratio),
        ),
        cost=cost_of(view, found.ratio, low=found.low, high=found.high, basis="modelled"),
        remedies=(_remedy(found),),
        explanation="In the graphs that the steps run, no op takes these bytes. How much of the input's time goes into "
        "them is modelled from the sizes of its elements.",
    )


def _part(part: ReadPart) -> str:
    """``10 % of float32 [64, 96, 96, 30]``."""
    what = f"{part.dtype} [{', '.join(str(size) for size in part.shape)}]"
    return f"{format_ratio(part.ratio)} of {what}" if part.ratio else f"nothing of {what}"


def _remedy(found: UnreadInput) -> Remedy:
    if found.parts[0].ratio:
        text = "select what the step reads in the map, before batch(), and give it that; the model then need not select"
    else:
        text = (
            "leave the feature that nothing reads out of the elements: in the map before batch(), or when it is parsed"
        )
    return Remedy(id="hand-over-what-is-read", text=text, safety="review")


def _places(view: StepsView, found: UnreadInput) -> tuple[Place, ...]:
    made = found.stage.datasets or tuple(d for d in view.pipeline.datasets if d.file)[:1]
    places = [view.place(d.fn_file, d.fn_line, d.fn_end_line, d.fn_name) for d in made if d.fn_file and d.fn_line]
    places += [p for d in made if (p := view.dataset_place(d)) is not None]
    if view.graphs is not None:
        places += graph_pattern.places(view, view.graphs, found.parts[0].selecting)
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="INP014",
    name="unread-input",
    cause="Data: inefficient data transmission",
    introduced_stage="data preparation",
    exposed_stage="training",
    pipeline_stage="preprocessing",
    needs=frozenset({Signal.STEPS, Signal.NODES}),
    params=Params(),
    detect=detect,
)
