"""Steps wait for copies from the host to the device.

## What it detects
Copies from host to device during which the device computes nothing. Also arrays that a compiled program itself keeps in
the host's memory (offloading), where the device waits for their copies, to it and back.

## Why it matters
The bus is ten to a hundred times slower than the device's memory. Frames sent as 32-bit floats take four times as long
as the bytes that they were decoded to, and frames larger than the model needs take longer still.

## Evidence
From an op trace with a device's work: `copy_ratio`, share of the steps in copies to the device that no kernel hides;
`staging_ratio`: the part of it in which the host copies from the program's memory to a pinned buffer, as JAX does;
`bytes_per_step` and `bytes_per_s`, the rate of the bus, if the trace gives sizes. The line is that of the input's map
that makes elements at least twice as large (a cast, one-hot rows), by static types and shapes, if there is one. Where
the program offloads, `copy_ratio` is the share in which the device waits in `copy-done` ops between its memory and the
host's (`S(5)` in their layouts), and `bytes_per_step` the sum of both ways, by types and shapes.

## Known limits
Copies hidden by kernels cost nothing and are not counted. Copies within and between devices are not included.

## Remedy
Copy while the device computes (`prefetch_to_device`, prefetch as the last stage), send small types (uint8) and convert
on the device, resize and crop before the copy. Where the program offloads: keep on the device what fits there, offload
smaller types and only what is needed late.

## References
Training-pipeline analysis (Rand 2020), the case of frames ten times as large; tf.data: prefetch_to_device.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.input import unread_input, widened_elements
from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.device import device_work, host_offload
from stepscope.derive.optrace.steps import step_parts
from stepscope.derive.steps_view import StepsView
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import op_places, trace_evidence
from stepscope.tables.findings import Remedy
from stepscope.tables.units import Ratio, format_bytes, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.input.widened_elements import Widening
    from stepscope.derive.optrace.trace_view import OpView
    from stepscope.derive.view import SessionView
    from stepscope.tables.place import Place
    from stepscope.tables.records import I64


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of the traced steps: Nsight and xprof report transfers from a tenth on."""


MIN_UNREAD = Ratio(0.3)
"""Share of the bytes of a batch that no op reads, from which leaving them out is the remedy."""
WAYS = (device_work.TO_DEVICE, device_work.FROM_DEVICE)
STAGED_PART = Ratio(0.5)
"""Share of the copies from which it is said that the host's part makes the most of them."""
_STAGED = (
    "Most of the time the host copies the array from the program's own memory into a buffer that the device can read: "
    "the bus is idle meanwhile."
)
_AHEAD = {
    "tensorflow": "tf.data.experimental.prefetch_to_device as the last stage",
    "jax": "jax.device_put it before the last step's result is awaited",
    "torch": "pin_memory=True in the DataLoader and .to(device, non_blocking=True)",
}


def detect(view: SessionView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    trace = view.traces.main
    if trace is None or trace.device < 0:
        return
    ratio, staged = trace.breakdown.ratio(*step_parts.TO_DEVICE), trace.breakdown.ratio("stage-to-device")
    waits = _offload_waits(trace)
    waited = intervals.clip(device_work.when(trace.trace, waits), trace.periods.windows)
    waited_ratio = intervals.total(waited) / max(1, intervals.total(trace.periods.windows))
    if waited_ratio >= params.min_ratio:
        yield _of_program(view, trace, waits, waited_ratio, params)
        return
    if ratio < params.min_ratio:
        return
    sent, seconds = _sent(trace)
    per_step = sent / max(1, len(trace.periods))
    widened = widened_elements.build(view.pipeline.datasets) if view.pipeline is not None else None
    size = f" ({format_bytes(per_step)} a step)" if sent else ""
    yield Seen(
        title=f"copies from host to device{size} take {format_ratio(ratio)} of the step, with no kernel running",
        confidence=0.9,
        where=_where(view, widened),
        evidence=(
            trace_evidence.evidence(trace, "copy_ratio", ratio, "ratio", params.min_ratio),
            *([trace_evidence.evidence(trace, "staging_ratio", staged, "ratio")] if staged else []),
            trace_evidence.evidence(trace, "bytes_per_step", per_step, "bytes"),
            trace_evidence.evidence(trace, "bytes_per_s", sent / seconds if seconds else 0.0, "bytes/s"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio),
        remedies=(
            Remedy(
                id="prefetch-to-device",
                text=f"copy the next batch while the device computes: {_AHEAD[trace.framework]}",
            ),
            Remedy(id="smaller-types", text=_smaller(widened)),
            Remedy(id="smaller-inputs", text=_fewer(view)),
        ),
        explanation="Only copies that no kernel hides are counted."
        + (f" {_STAGED}" if staged >= STAGED_PART * ratio else ""),
    )


def _offload_waits(trace: OpView) -> I64:
    """Rows of the steps' ops in which the device waits for an array in the host's memory, both ways."""
    rows = np.concatenate([host_offload.rows(trace.trace, trace.device, way, waits=True) for way in WAYS])
    events = trace.trace.events
    within: I64 = rows[intervals.overlapping(trace.periods.windows, events.start_ns[rows], events.end_ns[rows])]
    return within


def _of_program(view: SessionView, trace: OpView, waits: I64, ratio: float, params: Params) -> Seen:
    """A program that keeps arrays in the host's memory, and waits for them a share of the steps."""
    steps = max(1, len(trace.periods))
    arrays, sizes = Counter[str](), dict.fromkeys(WAYS, 0.0)
    for one, count in host_offload.what(trace.trace, waits):
        arrays[one.array] += one.bytes * count
        sizes[one.way] += one.bytes * count / steps
    largest = arrays.most_common(1)[0][0]
    return Seen(
        title=f"the device waits {format_ratio(ratio)} of the step for arrays that the program keeps in the host's "
        f"memory: {format_bytes(sizes[device_work.TO_DEVICE])} fetched and "
        f"{format_bytes(sizes[device_work.FROM_DEVICE])} put back a step, most of it as {largest}",
        confidence=0.9,
        introduced_stage="model building",
        where=op_places.of_steps(view),
        evidence=(
            trace_evidence.evidence(trace, "copy_ratio", ratio, "ratio", params.min_ratio),
            trace_evidence.evidence(trace, "bytes_per_step", sum(sizes.values()), "bytes"),
            trace_evidence.steps(trace),
        ),
        cost=cost_of(view, ratio, low=0.0, high=ratio),
        remedies=(
            Remedy(
                id="keep-on-device",
                text="keep on the device what fits there: memory kind device in its sharding, no offloading policy",
            ),
            Remedy(id="smaller-offload", text=f"offload smaller types, and less: {largest} makes most of the bytes"),
            Remedy(id="more-work-per-fetch", text="compute more with each array that is fetched, to hide the next one"),
        ),
        explanation="The device waits in copy-done ops, whose layouts say that one end is the host's memory, and "
        "computes nothing meanwhile. The cost is the most that keeping the arrays on the device can save.",
    )


def _sent(trace: OpView) -> tuple[float, float]:
    """(bytes, seconds) of the copies within the steps; one across an edge counts by its part within."""
    rows = device_work.copies(trace.trace, trace.device, device_work.TO_DEVICE)
    events, sizes = trace.trace.events, device_work.copied_bytes(trace.trace, rows)
    within = intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], trace.periods.windows)
    part = within / np.maximum(1, events.dur_ns[rows])
    return float((sizes * part).sum()), 1e-9 * float(within.sum())


def _fewer(view: SessionView) -> str:
    unread = view.get(unread_input.build) if isinstance(view, StepsView) else None
    if unread is None or unread.unread_ratio < MIN_UNREAD:
        return "resize and crop before the copy to the size that the model uses"
    read = format_bytes(unread.batch_bytes - unread.unread_bytes)
    return f"hand over what the step reads: {read} of the {format_bytes(unread.batch_bytes)} of a batch"


def _where(view: SessionView, widened: Widening | None) -> tuple[Place, ...]:
    first = view.dataset_place(widened.made) if widened is not None else None
    rest = trace_evidence.stage_places(view) or op_places.of_steps(view)
    return tuple(dict.fromkeys((first, *rest))) if first is not None else rest


def _smaller(widened: Widening | None) -> str:
    if widened is None:
        return "send the type that was decoded (uint8) and convert it on the device"
    which = f"{widened.made.fn_name or 'the map'} (line {widened.made.line})"
    return (
        f"{which} makes {widened.ratio:.3g} times the bytes that it takes: do that on the device, in the model's first "
        "layers, and send what it takes"
    )


DETECTOR = Detector(
    code="KRN002",
    name="host-to-device-copy-bound",
    symptom="Processor: abnormal GPU utilization",
    cause="Data: inefficient data transmission",
    introduced_stage="data preparation",
    pipeline_stage="host-to-device",
    needs=frozenset({Signal.DEVICE_TRACE}),
    params=Params(),
    detect=detect,
)
