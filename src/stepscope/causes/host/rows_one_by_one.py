"""Runs of a model on a few rows each, from a loop none of whose turns needs the result of another.

Such rows are all there before the loop begins, or could be collected: one run could take many of them. A loop that
waits for requests, one that feeds a result back (a decoder, an environment), one whose calls keep a state in an
attribute, and one that runs the same input again (a benchmark), are no such loops.

What one row costs says whether more rows would cost hardly more: a run that takes no longer than being called and
reading each weight once does little arithmetic. Convolutions, and sequences of many tokens, use a weight many times.

Serves rows_one_by_one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.system import contention
from stepscope.derive.python import element_loops
from stepscope.model.log.events import InferenceSession
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample, Spot
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name

CPU = "CPUExecutionProvider"
CALL_NS = 50_000
"""Time of a run that does next to nothing, with conversion of its arrays. Measured: 8 us for four products of 64 by 64
(docs/benchmarks/onnx-rows.md), and a few us for each node of a larger graph."""
WEIGHT_NS = 0.5
"""Time to read a weight once: 4 bytes at 8 GB/s. Measured on one thread: 0.07 to 0.08 ns for products of one row, 20 ns
and more for convolutions; by the arithmetic alone, 128 rows take 1.3 ns and more on 200 GFLOP/s."""
CPUS = 2
"""For which this holds: with more of them arithmetic takes less of the wall time."""
_QUIET = 20
"""Percentile of the durations that stands for a run which nothing disturbs."""


class FewRows(Struct, frozen=True, kw_only=True):
    """Runs of one model from one line, within the steady steps."""

    name: Name
    made: InferenceSession
    runs: int
    rows: float
    """Median of their first sizes."""
    run_ns: float
    """Mean duration."""
    ratio: float
    """Share of the steady wall time in them."""
    weights: int
    """Weights of the model in single precision; 0: its file was not seen."""
    file: str
    function: str
    line: int
    """Where the loop begins."""


def build(view: StepsView, max_rows: int) -> FewRows | None:
    """The line with the most time in runs of at most ``max_rows`` rows, where a run could take more."""
    calls = view.calls(Kind.INFERENCE).begun_in(view.steps.windows)
    made = {event.model: event for event in view.steps.worker.all(InferenceSession)}
    weights = {one.model: one.floats for one in view.session.manifest.models}
    used = view.get(contention.build)
    weight_ns = WEIGHT_NS * min(1.0, CPUS / used.available) if used is not None else WEIGHT_NS
    found = []
    for row in view.named_times(Kind.INFERENCE):
        event, mine = made.get(row.name.text), calls.named([row.name.id])
        sized = mine.args[mine.args > 0]
        if event is None or not event.open_batch or event.providers[:1] != [CPU] or not len(sized):
            continue
        rows, floats = float(np.median(sized)), weights.get(event.model, 0)
        quiet = float(np.percentile(mine.durations, _QUIET))
        if rows > max_rows or quiet > CALL_NS + weight_ns * floats:
            continue
        loop = _loop(view, row.name)
        if loop is None:
            continue
        found.append(
            FewRows(
                name=row.name,
                made=event,
                runs=row.calls,
                rows=rows,
                run_ns=row.total_ns / row.calls,
                ratio=min(1.0, row.total_ns / view.steps.steady_ns),
                weights=floats,
                file=loop[0],
                function=loop[1],
                line=loop[2],
            )
        )
    return max(found, key=lambda one: one.ratio, default=None)


def _loop(view: StepsView, name: Name) -> tuple[str, str, int] | None:
    """File, function and first line of the innermost loop around the call, if its turns are independent."""
    for sample in view.samples:
        frames = _up_to_loop(view, sample, name)
        if frames:
            outer = frames[-1]
            source = view.source_of(outer.file) or ""
            loop = element_loops.every(source, outer.line)[0]
            over_rows = loop.independent and element_loops.reads_target(source, loop)
            stateful = any(element_loops.keeps_state(view.source_of(f.file) or "", f.line) for f in frames)
            return (outer.file, outer.function, loop.first) if over_rows and not stateful else None
    return None


def _up_to_loop(view: StepsView, sample: Sample, name: Name) -> list[Spot]:
    """The user's frames from the call up to the one that stands in a loop; none if the sample shows neither."""
    own = [frame for frame in sample.frames if frame.own]
    at = next((i for i, f in enumerate(own) if (f.file, f.line) == (name.call_file, name.call_line)), -1)
    found = []
    for frame in reversed(own[: at + 1]):
        found.append(frame)
        source = view.source_of(frame.file)
        if source is not None and element_loops.every(source, frame.line):
            return found
    return []
