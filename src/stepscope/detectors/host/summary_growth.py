"""Summaries for TensorBoard fill the disk.

## What it detects
A job that writes summaries and whose files, checkpoints excluded, grow so fast that a disk is full within days.

## Why it matters
Event files only grow: a histogram of every weight in every step is gigabytes an hour. TensorBoard reads them all, and a
full disk ends the job.

## Evidence
`bytes_per_hour` and `bytes_per_step`: what the process wrote to storage over the steady steps (/proc/PID/io), less the
checkpoints; `summary_calls_per_step`; `summary_ratio`: share of the steady wall time spent writing summaries, which is
the cost.

## Known limits
Files on a RAM disk do not count. What the job writes besides summaries and checkpoints (logs, arrays) is included.
Summaries that take 5 % of the time or more are reported once, as blocking writes (HST006).

## Remedy
Write scalars every N steps (`update_freq=N`), histograms and images once an epoch or less.

## References
tf.summary and keras.callbacks.TensorBoard, `update_freq` and `histogram_freq`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of, in_steps
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import format_bytes
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps_view import StepsView

HOUR_S = 3600.0


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_bytes_per_hour: float = float(1 << 30)
    """A disk of 100 GB is full in four days."""
    min_bytes_per_step: float = float(4 << 10)
    """A log line dirties a page, which is this much."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield at most one finding."""
    rows = view.named_times(Kind.SUMMARY)
    written = _written(view)
    steps = view.steps
    if not rows or written is None:
        return
    size, seconds = written
    per_hour = size / seconds * HOUR_S
    per_step = per_hour / HOUR_S * steps.steady_ns / steps.steady_count / 1e9
    if per_hour < params.min_bytes_per_hour or per_step < params.min_bytes_per_step:
        return
    calls = sum(r.calls for r in rows)
    ratio = sum(r.total_ns for r in rows) / steps.steady_ns
    yield Seen(
        title=f"summaries fill the disk: {format_bytes(per_step)} a step, {format_bytes(per_hour)} an hour",
        confidence=0.7,
        symptom="Time: slow execution time" if ratio else "unknown",
        where=_places(view, rows),
        evidence=(
            Evidence(metric="bytes_per_hour", value=per_hour, unit="bytes", threshold=params.min_bytes_per_hour),
            Evidence(metric="bytes_per_step", value=per_step, unit="bytes", threshold=params.min_bytes_per_step),
            Evidence(metric="summary_calls_per_step", value=calls / steps.steady_count, unit="calls"),
            Evidence(metric="summary_ratio", value=ratio, unit="ratio"),
        ),
        cost=cost_of(
            view,
            ratio,
            low=0.95 * ratio,
            high=1.02 * ratio,
            each=in_steps(steps, view.calls(Kind.SUMMARY).spans),
        ),
        remedies=(
            Remedy(
                id="summaries-less-often",
                text="write scalars every N steps (update_freq=N), histograms and images once an epoch or less",
            ),
        ),
        explanation="Event files only grow, and TensorBoard reads them whole.",
    )


def _written(view: StepsView) -> tuple[int, float] | None:
    """Bytes that the process wrote within the steady steps, less its checkpoints, and seconds; None if unknown."""
    steps = view.steps
    lo, hi = int(steps.windows[0][0]), int(steps.windows[1][-1])
    table = view.session.process.take(view.session.process.pid == steps.worker.info.pid)
    table = table.take((table.at_ns >= lo) & (table.at_ns <= hi) & (table.write_bytes >= 0))
    if len(table) <= 1:
        return None
    records = steps.worker.records
    first, last = int(table.at_ns[0]), int(table.at_ns[-1])
    saved = (records.kind == Kind.SAVE) & (records.start_ns >= first) & (records.start_ns <= last)
    size = int(table.write_bytes[-1] - table.write_bytes[0]) - int(np.maximum(records.arg[saved], 0).sum())
    return max(0, size), (last - first) / 1e9


def _places(view: StepsView, rows: tuple[NamedTime, ...]) -> tuple[Place, ...]:
    places = [
        view.place(r.name.call_file, r.name.call_line, function=r.name.call_function) for r in rows if r.name.call_file
    ]
    fit = view.fit_place()
    if fit is not None and not places:
        places.append(fit)
    return tuple(dict.fromkeys(places))


DETECTOR = Detector(
    code="HST010",
    name="summary-growth",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="storage",
    needs=frozenset({Signal.STEPS, Signal.MEMORY}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"HST006"}),
)
