"""Runs of a model on a few rows each, from a loop none of whose turns needs the result of another.

Such rows are all there before the loop begins, or could be collected: one run could take many of them. A loop that
waits for requests, and one that feeds a result back (a decoder, an environment), are no such loops.

What one row costs says whether more rows would cost hardly more: a run that takes no longer than being called and
reading each weight once does little arithmetic. Convolutions, and sequences of many tokens, use a weight many times.

Serves rows_one_by_one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.python import element_loops
from stepscope.model.log.events import InferenceSession
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name

CPU = "CPUExecutionProvider"
CALL_NS = 50_000
"""Time of a run that does next to nothing, with conversion of its arrays. Measured: 7 us for four products of 64 by 64
(ONNX Runtime 1.32.0), and a few us for each node of a larger graph."""
WEIGHT_NS = 0.5
"""Time to read a weight once: 4 bytes at 8 GB/s. Measured: 0.03 to 0.4 ns for products of one row; 128 rows take 1.3 ns
and more on 100 to 200 GFLOP/s."""
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
    found = []
    for row in view.named_times(Kind.INFERENCE):
        event, mine = made.get(row.name.text), calls.named([row.name.id])
        sized = mine.args[mine.args > 0]
        if event is None or not event.open_batch or event.providers[:1] != [CPU] or not len(sized):
            continue
        rows, floats = float(np.median(sized)), weights.get(event.model, 0)
        quiet = float(np.percentile(mine.durations, _QUIET))
        if rows > max_rows or quiet > CALL_NS + WEIGHT_NS * floats:
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
        around = _around(view, sample, name)
        if around is not None:
            file, function, loop = around
            return (file, function, loop.first) if loop.independent else None
    return None


def _around(view: StepsView, sample: Sample, name: Name) -> tuple[str, str, element_loops.LoopLines] | None:
    """The innermost loop around the call on the stack of a sample; None: it does not show the call, or no loop."""
    own = [frame for frame in sample.frames if frame.own]
    at = next((i for i, f in enumerate(own) if (f.file, f.line) == (name.call_file, name.call_line)), -1)
    for frame in reversed(own[: at + 1]):
        source = view.source_of(frame.file)
        loops = element_loops.every(source, frame.line) if source is not None else ()
        if loops:
            return frame.file, frame.function, loops[0]
    return None
