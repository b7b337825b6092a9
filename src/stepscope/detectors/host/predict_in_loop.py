"""Keras' predict, evaluate or fit is called many times on little data.

## What it detects
`model.predict` (or `evaluate`, `fit`) called many times from a loop, where most of each call is not the compiled
function but Keras' own preparation: a data adapter, a tf.data iterator, callbacks, result collection. Also within one
call of a callback: a metric of the validation set, one example at a time.

## Why it matters
Such a call spends milliseconds before and after the model runs. On single rows the model itself takes a fraction of
that, so the loop is an order of magnitude slower than the model allows.

## Evidence
`calls`: number of calls; `call_ns`: mean time of one; `overhead_ns`: the part of a call outside the compiled function.
Both are timed call by call. `overhead_ratio`: its share of the steady wall time. Calls of more than 64 batches are left
out.

## Known limits
The time that the compiled function spends waiting for its (tiny) input counts as the function's; at most, the whole
calls go, and what the loop's own lines do around them. Overhead is measured on the wall: the lower end takes that of
the fastest calls for all.

## Remedy
Call the model directly on arrays, preferably inside a `tf.function` (`model(x, training=False)`), use
`predict_on_batch`, or collect rows and predict them in one call.

## References
Keras documentation of Model.predict ("for small numbers of inputs ... directly use __call__()"); tensorflow issue
40261.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.job import purpose
from stepscope.derive.numeric import intervals
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.shared import loop_python
from stepscope.model.log.events import BatchSeen
from stepscope.tables.findings import Evidence, Remedy, Stage
from stepscope.tables.units import Ratio, format_ns, format_ratio, format_times
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.steps.calls import Calls
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name
    from stepscope.tables.records import I64


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_calls: int = 10
    """Within the steady steps."""
    max_batches: int = 64
    """Per call: Keras' work around so many batches is small in comparison, or belongs to each batch."""
    min_ratio: Ratio = Ratio(0.05)
    """Overhead of the calls as a share of the steady wall time."""


STAGES: dict[str, Stage] = {"predict": "prediction", "evaluate": "evaluation", "fit": "training"}
BATCHES = {"predict": "predict", "evaluate": "test", "fit": "train"}
"""Role of the batches of each method."""
REMEDIES = {
    "predict": "call the model itself, model(x, training=False), inside a tf.function, or predict_on_batch; or "
    "collect the rows and predict them in one call",
    "evaluate": "evaluate less often, or keep metrics in the loop with test_on_batch",
    "fit": "call fit once with more epochs, or train_on_batch for single batches",
}


SURE = 0.9
"""Part of the overhead that goes at most for sure: the model is called all the same."""
FASTEST = 10
"""Percentile of the calls' overheads that stands for one which nothing disturbs."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield one finding per role that is called too often, in the loop or in callbacks."""
    steps = view.steps
    loops = view.calls(Kind.LOOP).begun_in(steps.windows)
    nested = loops.flagged(Flag.NESTED)
    callbacks = view.calls(Kind.CALLBACK).begun_in(steps.windows).spans
    within = intervals.clipped_sum(loops.starts, loops.ends, callbacks) >= loops.durations
    for role in REMEDIES:
        if _batches(view, role) > params.max_batches:
            continue
        names = [n.id for n in view.names.values() if n.role == role]
        yield from _seen(view, role, loops.where(~within & ~nested).named(names), 0, params)
        inside = loops.where(within).named(names)
        around = np.unique(np.searchsorted(callbacks[0], inside.starts, side="right"))
        if len(inside) >= params.min_calls * len(around):
            yield from _seen(view, role, inside, len(around), params)


def _seen(view: StepsView, role: str, rows: Calls, around: int, params: Params) -> Iterator[Seen]:
    """The finding about some calls; ``around``: number of calls of callbacks that they lie in, 0 outside of all."""
    steps = view.steps
    if len(rows) < params.min_calls:
        return
    starts, ends, ids = rows.starts, rows.ends, rows.names
    # Only the steady steps: what a call runs in a gap is not recorded, and is no overhead.
    whole = intervals.clipped_sum(starts, ends, steps.windows)
    inner = view.calls(*kinds_with(Trait.COMPILED)).begun_in(steps.windows).spans
    overhead = whole - intervals.clipped_sum(starts, ends, intervals.clip(inner, steps.windows))
    ratio = float(overhead.sum()) / steps.steady_ns
    if ratio < params.min_ratio:
        return
    name = view.names[int(np.bincount(ids).argmax())]
    where = (view.place(name.call_file, name.call_line, function=name.call_function),) if name.call_file else ()
    mean = float((ends - starts).mean())
    part = mean * float(overhead.sum()) / float(whole.sum())
    training = _trains(view)
    yield Seen(
        title=f"model.{role} is called {_often(view, name, len(starts), around)}: {format_ns(mean)} a call, "
        f"{format_ns(part)} of it Keras' own overhead ({format_ratio(ratio)} of the time)",
        confidence=0.95,
        introduced_stage=STAGES[role],
        exposed_stage="training" if training else STAGES[role],
        where=where,
        evidence=(
            Evidence(
                metric="overhead_ratio",
                value=ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(*(("component:callbacks",) if around else ()), f"name:{name.id}"),
            ),
            Evidence(metric="calls", value=len(starts), unit="calls", threshold=params.min_calls),
            Evidence(metric="call_ns", value=mean, unit="ns"),
            Evidence(metric="overhead_ns", value=part, unit="ns"),
        ),
        cost=cost_of(
            view,
            ratio,
            low=min(SURE, _least(overhead[whole >= SURE * rows.durations])) * ratio,
            high=float(whole.sum()) / steps.steady_ns + (0.0 if around else loop_python.own_ratio(view)),
        ),
        remedies=(Remedy(id=f"no-{role}-in-loop", text=REMEDIES[role]),),
        explanation="Every such call builds a data adapter and an iterator and runs callbacks; the compiled "
        "function is the smaller part of it.",
    )


def _least(overhead: I64) -> float:
    """Part of the whole calls' overhead that is Keras' own for sure: it does the same in each call, so that what the
    fastest calls do without may be a wait for a CPU.
    """
    return float(np.percentile(overhead, FASTEST)) / float(overhead.mean()) if len(overhead) else SURE


def _often(view: StepsView, name: Name, calls: int, around: int) -> str:
    if around:
        return f"{calls / around:.0f} times in each {name.call_function or 'callback'}"
    steps = view.steps
    lo, hi = steps.windows
    seen = int(((steps.starts >= lo[0]) & (steps.starts < hi[-1])).sum())  # those with a gap in them as well
    return f"{format_times(calls / (seen + steps.skipped), 'step')} in a loop"


def _batches(view: StepsView, role: str) -> float:
    """Number of batches of a typical call; 0 if unknown."""
    seen = [b.steps for b in view.worker.all(BatchSeen) if b.role == BATCHES[role]]
    return float(np.median(seen)) if seen else 0.0


def _trains(view: StepsView) -> bool:
    """Whether something is also trained in the steady steps: the loop's time is then training time."""
    steps = view.steps
    records = steps.worker.records
    lo, hi = steps.windows
    mine = (records.start_ns >= lo[0]) & (records.start_ns < hi[-1])
    if (mine & (records.kind == Kind.APPLY)).any():
        return True
    roles = {n.id for n in view.names.values() if n.role in {"train", "fit", "train_on_batch"}}
    updating = view.get(purpose.updating_functions)
    kinds = mine & np.isin(records.kind, kinds_with(Trait.TRAINER))
    return bool(np.isin(records.name[kinds], list(roles | updating)).any())


DETECTOR = Detector(
    code="HST003",
    name="predict-in-loop",
    cause="API: inefficient API usage",
    pipeline_stage="forward-backward",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"tensorflow"}),
    params=Params(),
    detect=detect,
)
