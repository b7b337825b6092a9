"""On which lines of the user's code the time of one component of the step is spent, the costliest first.

A line is as deep as the session knows it: of ops by the op trace, of calls by their records, of Python by stack
samples, of the input by the slowest stage of its pipeline. Where nothing deeper is known, it is the line that makes the
steps.

Serves the general detectors and the settling of the ledger.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.general import compute_lines
from stepscope.derive.numeric import intervals
from stepscope.derive.python import doing, hot_spots, stack_samples
from stepscope.derive.steps.anatomy import NAMED_BY
from stepscope.derive.steps.candidate import EVALUATIONS
from stepscope.derive.steps.steps import names_of
from stepscope.model.log.events import Traced
from stepscope.tables.place import Place
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stepscope.derive.input.stages import Stage
    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.report.components import ComponentName

MAX_LINES = 3
"""Maximum number of lines of one component."""
LEAST = 0.05
"""Smaller parts of a component's time are left out."""
MIN_SAMPLES = 4
"""Fewer stack samples name no line."""


class SpentLine(Struct, frozen=True, kw_only=True):
    """A line, and the part of a component's time that is spent on it."""

    place: Place
    ratio: float
    """Share of the component's time; 0: not known, the line is only the nearest known one."""
    what: str = ""
    """What runs there: types of ops, a callback, the function that the line calls; "" if unknown."""
    calls: int = 0
    """Number of calls within the steady steps; 0: not counted."""
    caller: Place | None = None
    """Line of the loop from which it is reached, if that is another one."""
    framework: float = 0.0
    """Share of its time within calls of the framework, where that is known."""


def of(view: StepsView, component: ComponentName) -> tuple[SpentLine, ...]:
    """The costliest lines of a component; empty if not even the line of the step's call is known."""
    found = [spent for spent in _BY.get(component, _sampled)(view, component) if spent.ratio >= LEAST][:MAX_LINES]
    if found:
        return tuple(found)
    place = of_steps(view)
    return (SpentLine(place=place, ratio=0.0),) if place is not None else ()


def of_steps(view: StepsView) -> Place | None:
    """The line that makes the steps: the call of fit, or the step's call in the user's loop."""
    fit = view.fit_place()
    if fit is not None:
        return fit
    if view.loop is not None and view.call_line:
        return view.place(view.loop[0], view.call_line, function=view.loop[1])
    call = view.steps.call
    if call is not None and call.file:
        return view.place(call.file, call.line, call.end_line, call.text)
    return _of_pulls(view)


def _of_pulls(view: StepsView) -> Place | None:
    """The line from which most batches are taken: nothing else names one where Keras computes with PyTorch or JAX."""
    pulls, names = view.calls(Kind.NEXT), names_of(view.worker)
    counts = Counter(number for number in pulls.names.tolist() if number in names and names[number].call_file)
    if not counts:
        return None
    name = names[counts.most_common(1)[0][0]]
    return view.place(name.call_file, name.call_line, function=name.call_function)


def _sampled(view: StepsView, component: ComponentName) -> list[SpentLine]:
    """By stack samples: the innermost line of the user's code."""
    spots = view.hot_spots(component)
    if sum(spot.samples for spot in spots) < MIN_SAMPLES:
        return []
    return [_of_spot(view, spot) for spot in spots]


def _of_spot(view: StepsView, spot: HotSpot) -> SpentLine:
    culprit, statement = spot.culprit, spot.statement
    place = view.place(culprit.file, culprit.line, function=culprit.function)
    caller = view.place(statement.file, statement.line, function=statement.function) if statement is not None else None
    return SpentLine(
        place=place,
        ratio=spot.ratio,
        what=doing.of_spot(spot, view.source_of),
        caller=caller if caller is not None and (caller.file, caller.line) != (place.file, place.line) else None,
    )


def _named(view: StepsView, component: ComponentName) -> list[SpentLine]:
    """By records with names: callbacks, saves, evaluations, builds, waits for a tensor."""
    kinds = {**NAMED_BY, **_NAMED}[component]
    rows = view.named_times(*kinds)
    if component == "evaluation":
        rows = tuple(row for row in rows if row.name.role in EVALUATIONS)
    return _of_rows(view, rows)


def _of_rows(view: StepsView, rows: Sequence[NamedTime]) -> list[SpentLine]:
    total = sum(row.total_ns for row in rows)
    found = []
    for row in rows:
        place = _row_place(view, row)
        if place is not None and total:
            what = row.name.text or row.name.role
            found.append(SpentLine(place=place, ratio=row.total_ns / total, what=what, calls=row.calls))
    return found


def _row_place(view: StepsView, row: NamedTime) -> Place | None:
    """The method if it is the user's, else the line that calls it, else that of the steps."""
    name = row.name
    if name.own and name.file:
        return view.place(name.file, name.line, name.end_line, name.text)
    if name.call_file and name.call_line:
        return view.place(name.call_file, name.call_line, function=name.call_function)
    return of_steps(view)


def _traced(view: StepsView, _: ComponentName) -> list[SpentLine]:
    """By the functions that are traced, with the lines that call them."""
    lo, hi = view.steps.windows
    records = view.calls(Kind.TRACE)
    events = {event.id: event for event in view.worker.all(Traced)}
    spent: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    first: dict[str, Traced] = {}
    inside = intervals.clipped_sum(records.starts, records.ends, (lo, hi))
    for number, time in zip(records.args.tolist(), inside.tolist(), strict=True):
        event = events.get(number)
        if event is None or time <= 0 or event.outer in events:
            continue
        key = event.definition_key or event.function
        first.setdefault(key, event)
        spent[key] += time
        calls[key] += 1
    total = sum(spent.values())
    return [
        found for key, time in spent.most_common() if (found := _of_trace(view, first[key], time / total, calls[key]))
    ]


def _of_trace(view: StepsView, event: Traced, ratio: float, calls: int) -> SpentLine | None:
    caller = None
    if event.stack:
        file, function, line = event.stack[-1]
        caller = view.place(file, line, function=function)
    place = view.place(event.file, event.line, event.end_line, event.function) if event.file else caller
    if place is None:
        return None
    return SpentLine(place=place, ratio=ratio, what=event.function, calls=calls, caller=caller)


def _input(view: StepsView, component: ComponentName) -> list[SpentLine]:
    """The slowest stage of the pipeline with its function; without a known pipeline, by stack samples."""
    stage = view.pipeline.slowest
    return (list(_of_stage(view, stage)) if stage is not None else []) or _sampled(view, component)


def _of_stage(view: StepsView, stage: Stage) -> Iterable[SpentLine]:
    for made in stage.datasets:
        place = view.dataset_place(made)
        if made.fn_file and made.fn_line:
            function = view.place(made.fn_file, made.fn_line, made.fn_end_line, made.fn_name)
            yield SpentLine(place=function, ratio=1.0, what=f"{stage.name} of the pipeline", caller=place)
        elif place is not None:
            yield SpentLine(place=place, ratio=1.0, what=f"{stage.name} of the pipeline")


def _compute(view: StepsView, component: ComponentName) -> list[SpentLine]:
    """By the op trace; without one, by stack samples of Python that runs inside of the call."""
    lines = view.get(compute_lines.build)
    if lines is not None and lines.lines:
        return [SpentLine(place=line.place, ratio=line.ratio, what=line.types_text) for line in lines.lines]
    whole = sum(sample.weight_ns for sample in view.samples if sample.component == component)
    inside = [s for s in view.samples if s.component == component and stack_samples.inside_call(s, view.loop)]
    part = stack_samples.weight_of(inside) / whole if whole else 0.0
    if part < compute_lines.MIN_NAMED or len(inside) < MIN_SAMPLES:
        return []
    spots = hot_spots.hot_spots(inside, frozenset({component}), view.loop)
    return [_of_spot(view, spot) for spot in spots]


_NAMED: dict[ComponentName, tuple[Kind, ...]] = {
    "evaluation": (Kind.LOOP,),
    "building": (Kind.BUILD,),
    "host-sync": (Kind.SYNC,),
}
_BY: dict[ComponentName, Callable[[StepsView, ComponentName], list[SpentLine]]] = {
    "input-wait": _input,
    "call": _compute,
    "callbacks": _named,
    "evaluation": _named,
    "building": _named,
    "saving": _named,
    "host-sync": _named,
    "tracing": _traced,
}
