"""A callback evaluates the model every few batches.

## What it detects
`evaluate` or `predict` called from a callback's batch hook (or from a training loop's steps) so often that it takes a
tenth or more of the steady wall time.

## Why it matters
Each call runs over a whole data set on the training thread. Once an epoch this is usually wanted; every few batches it
multiplies the cost of validation.

## Evidence
`evaluation_ratio`: share of the steady wall time, gaps included, inside of these calls, each timed. `steps_between`:
steps per call, over the whole run. `traces`, `traced_ratio`: traces of Keras' own function in these calls, and the
share of the calls' time in traces, where nearly each call has one: its model is a new one.

## Known limits
Whether such frequent validation is wanted (early stopping on very long epochs) only the user knows.

## Remedy
Evaluate in `on_epoch_end` or through `validation_data` and `validation_freq`, or on a small sample. A model that is
made for each call (`keras.Model(inputs, layer.output)`) is to be made once: the function of a new model is traced
again.

## References
FSE'22 study, evaluation-stage rows; Keras guide on callbacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps, rare
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.model.log.events import Traced
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.10)
    """Of steady wall time."""
    min_calls: int = 3
    """Within the steady steps."""


MOST = 0.8
"""Traces of Keras' own function for each call, from which each call has a new model: some fall into gaps."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield one finding per callback method that evaluates on batches."""
    steps = view.steps
    records = steps.worker.records
    on_thread = records.thread == steps.thread
    loops = on_thread & (records.kind == Kind.LOOP)
    roles = [n.id for n in view.names.values() if n.role in {"evaluate", "predict"}]
    loops &= np.isin(records.name, roles)
    names = records.name[loops]
    starts = records.start_ns[loops]
    ends = starts + records.dur_ns[loops]
    first, last = steps.span
    unobserved = intervals.clip(gaps.periods(steps.worker.gaps), (np.array([first]), np.array([last])))
    looked_at = intervals.union(steps.windows, unobserved)
    for row in view.named_times(Kind.CALLBACK):
        if "batch" not in row.name.hook:
            continue
        mine = on_thread & (records.kind == Kind.CALLBACK) & (records.name == row.name.id)
        spans = intervals.merge(records.start_ns[mine], records.start_ns[mine] + records.dur_ns[mine])
        inside = intervals.clipped_sum(starts, ends, spans) == ends - starts
        # In a gap callbacks leave no records, loops do: those called at the same place.
        inside |= np.isin(names, names[inside]) & (intervals.clipped_sum(starts, ends, unobserved) > 0)
        inside &= intervals.clipped_sum(starts, ends, looked_at) > 0
        calls = int(inside.sum())
        spent = intervals.total(intervals.clip(intervals.merge(starts[inside], ends[inside]), looked_at))
        ratio = spent / intervals.total(looked_at)
        if calls < params.min_calls or ratio < params.min_ratio:
            continue
        name = view.names[int(names[inside][0])]
        where = [view.place(row.name.file, row.name.line, row.name.end_line, row.name.text)]
        if name.call_file:
            where.insert(0, view.place(name.call_file, name.call_line, function=name.call_function))
        often = rare.of(steps, loops & np.isin(records.name, names[inside]))
        between = often.every if often is not None else (steps.steady_count + steps.skipped) / calls
        when = often.often("batch", "batches") if often is not None else f"about every {between:.2g} batches"
        traces, traced_ns = _traced(view, intervals.merge(starts[inside], ends[inside]))
        anew = traces >= max(params.min_calls, MOST * calls)
        yield Seen(
            title=f"the callback {row.name.text} calls model.{name.role} {f'of a new model {when}' if anew else when}, "
            f"{format_ns(spent / calls)} each: validation takes {format_ratio(ratio)} of the time"
            + (f", {format_ratio(traced_ns / max(1, spent))} of it traces" if anew else ""),
            confidence=0.95,
            where=tuple(where),
            evidence=(
                Evidence(
                    metric="evaluation_ratio",
                    value=ratio,
                    unit="ratio",
                    threshold=params.min_ratio,
                    refs=(f"name:{name.id}",),
                ),
                Evidence(metric="steps_between", value=between, unit="steps"),
                Evidence(metric="calls", value=calls, unit="calls", threshold=params.min_calls),
                *(
                    (
                        Evidence(metric="traces", value=traces, unit="traces"),
                        Evidence(metric="traced_ratio", value=traced_ns / max(1, spent), unit="ratio"),
                    )
                    if anew
                    else ()
                ),
            ),
            cost=cost_of(view, ratio, low=0.9 * ratio, high=ratio),
            remedies=(_ONE_MODEL, *_LESS) if anew else _LESS,
            explanation="The calls run over the whole data set on the training thread, between two batches.",
        )


def _traced(view: StepsView, spans: Intervals) -> tuple[int, int]:
    """How often functions of Keras were traced for the first time within some spans, and the time in traces there: the
    function of a model that is kept is traced again for other shapes, at most.
    """
    first = (event for event in view.steps.worker.all(Traced) if event.owner == "keras" and event.ordinal == 1)
    made = [event.at - event.dur for event in first]
    at = np.array(made, np.int64)
    within = intervals.overlapping(spans, at, at + 1) if len(at) else at
    traces = view.calls(Kind.TRACE).spans
    return int(within.sum()), intervals.total(intervals.clip(traces, spans))


_ONE_MODEL = Remedy(
    id="one-model",
    text="make that model once, before the training, and keep it: each new keras.Model has its function traced again",
)
_LESS = (
    Remedy(
        id="evaluate-per-epoch", text="evaluate once an epoch (on_epoch_end, or validation_data with validation_freq)"
    ),
    Remedy(id="evaluate-a-sample", text="or on a small fixed sample of the validation set"),
)


DETECTOR = Detector(
    code="HST005",
    name="evaluation-in-batch-callback",
    cause="API: inefficient API usage",
    introduced_stage="evaluation",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
