"""Keras callbacks, or hooks of a MonitoredSession, take a large part of the time.

## What it detects
A callback whose own work on every batch (or, if it is very long, on every epoch) takes a noticeable part of the steady
wall time; a SessionRunHook whose before_run or after_run does; or several that do so together.

## Why it matters
Keras runs callbacks, and a MonitoredSession its hooks, on the training thread between two steps: the device waits.
Tools that see only ops report this time as "all others" or as input.

## Evidence
`callback_ratio`: share of the steady wall time in the callback, every call timed, excluding the saving, summary writing
and evaluation inside it (other detectors cover these). `callback_ns_per_call`, `calls`.

## Known limits
On an accelerator the first callback that reads the loss waits for the device; that wait counts as the callback's.

## Remedy
Do the work every N batches (runs) or once an epoch, make it cheaper, or hand it to another thread.

## References
Keras guide on writing your own callbacks; tf.compat.v1.train.SessionRunHook; M6 of our own null results: an empty
callback costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.causes.general import waits
from stepscope.derive.numeric import concentration, intervals
from stepscope.derive.python import doing
from stepscope.derive.steps import calls, rare
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of, in_steps, step_ns
from stepscope.detectors.shared import general_loss
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.python.hot_spots import HotSpot
    from stepscope.derive.steps.named_times import NamedTime
    from stepscope.derive.steps.rare import Rare
    from stepscope.derive.steps.steps import Steps
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import Name
    from stepscope.tables.records import F64, I64


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_batch_ratio: Ratio = Ratio(0.05)
    """For hooks that run on every batch; share of the steady wall time."""
    min_call_ns: int = 200_000
    """Per call of one callback, or per step of all together: below it the steps are many rather than the hook slow."""
    min_epoch_ratio: Ratio = Ratio(0.10)
    """For hooks that run once an epoch, where some work is normal."""
    max_waiting_ratio: Ratio = Ratio(0.5)
    """Of the time of callbacks in waits that are known: GEN014 tells these, with what is waited for."""


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield a finding for each slow callback; if none is slow by itself, one for all of them together."""
    steps = view.steps
    rows = view.named_times(Kind.CALLBACK)
    found = 0
    if waits.part_of(view, "callbacks", waits.sure(view)) >= params.max_waiting_ratio:
        return
    own = [(row, _own_ns(steps, row) / steps.steady_ns) for row in rows]
    for group in _by_method(own):
        ratio = sum(r for _, r in group)
        least = params.min_batch_ratio if _per_batch(group[0][0].name.hook) else params.min_epoch_ratio
        slow = sum(row.total_ns for row, _ in group) >= params.min_call_ns * max(row.calls for row, _ in group)
        if ratio >= least and slow:
            found += 1
            yield _finding(view, [row for row, _ in group], ratio, least)
    small = [(row, ratio) for row, ratio in own if _per_batch(row.name.hook)]
    together = sum(ratio for _, ratio in small)
    steady = steps.steady_ns / steps.steady_count
    enough = together * steady >= params.min_call_ns
    if not found and len(small) > 1 and together >= params.min_batch_ratio and enough:
        yield _finding(view, [row for row, _ in small], together, params.min_batch_ratio)


def _by_method(own: list[tuple[NamedTime, float]]) -> list[list[tuple[NamedTime, float]]]:
    """Callbacks that inherit the same user method have one root and are judged together."""
    groups: dict[tuple[object, ...], list[tuple[NamedTime, float]]] = {}
    for row, ratio in own:
        name = row.name
        key = (name.hook, name.file, name.line) if name.own and name.file else (name.id,)
        groups.setdefault(key, []).append((row, ratio))
    return list(groups.values())


MIN_SAMPLES = 8
"""Stack samples from which a function inside of a callback is named."""
MOST = 0.5
"""Share of the callbacks' time that it must have."""
MIN_TURNS = 3
"""Calls that last, from which their distance is known."""
NAMED = 3
"""Number of classes named in a title."""
SESSION_HOOKS = frozenset({"before_run", "after_run"})


def _per_batch(hook: str) -> bool:
    return "batch" in hook or hook in SESSION_HOOKS


def _own_ns(steps: Steps, row: NamedTime) -> float:
    """Time of a callback's hook without the saving, summaries and Keras loops inside it."""
    spans = calls.of(steps, Kind.CALLBACK).named([row.name.id]).spans
    other = calls.of(steps, *kinds_with(Trait.WRITES), Kind.LOOP)
    covered = intervals.clipped_sum(other.starts, other.ends, spans)
    parts = other.where((other.durations > 0) & (covered == other.durations)).spans
    return row.total_ns - intervals.total(intervals.clip(intervals.clip(parts, spans), steps.windows))


def _finding(view: StepsView, rows: list[NamedTime], ratio: float, least: float) -> Seen:
    steps = view.steps
    count = steps.steady_count
    mean = steps.steady_ns / count
    calls = sum(r.calls for r in rows)
    name = rows[0].name
    per_call = ratio * mean * count / max(1, calls)
    kind = name.text.rpartition(".")[0] or name.text
    in_session = name.hook in SESSION_HOOKS
    few = concentration.few(_durations(steps, rows[0])) if _per_batch(name.hook) and len(rows) == 1 else None
    turns = _turns(steps, rows[0]) if _per_batch(name.hook) and len(rows) == 1 else None
    few = few if turns is None else None
    once = general_loss.once(few)
    when = "every run" if in_session else "every batch" if _per_batch(name.hook) else "every epoch"
    share = format_ratio(ratio)
    what = "hook" if in_session else "callback"
    if len(_by_method([(r, 0.0) for r in rows])) == 1 < len(rows):
        each = format_ns(per_call * calls / max(r.calls for r in rows))
        names = ", ".join(r.name.text.rpartition(".")[0] for r in rows[:NAMED])
        more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
        title = (
            f"{len(rows)} {what}s that inherit the same {name.hook} ({names}{more}) take {each} on {when}: "
            f"{share} of the time"
        )
        kind = f"these {what}s"
    elif turns is not None:
        often = turns.often("run", "runs") if in_session else turns.often("batch", "batches")
        # Where steps were only counted, few of its turns were timed: one takes what the share and the distance say.
        each = format_ns(ratio * step_ns(view) * turns.every if steps.count > len(steps) else turns.usual_ns)
        title = f"the {what} {kind} takes {each} {often} ({name.hook}): {share} of the time"
        title += _inside(view, rows[0])
    elif len(rows) == 1:
        title = (
            f"the {what} {kind} takes {format_ns(per_call)} on {when} ({name.hook}): {share} of the time"
            if few is None
            else f"the {what} {kind} takes {format_ns(few.each)} {few.said('calls')} of {name.hook}: {share} of time"
        ) + _inside(view, rows[0])
    else:
        what = "hooks of the session" if in_session else "callback hooks"
        title = (
            f"{len(rows)} {what} together take {format_ns(ratio * step_ns(view))} of every step "
            f"({share} of the time), {kind} the most"
        )
    return Seen(
        title=title,
        confidence=0.95,
        where=tuple(dict.fromkeys([*(p for r in rows if (p := _place(view, r)) is not None), *_hot_places(view)])),
        evidence=(
            Evidence(
                metric="callback_ratio",
                value=ratio,
                unit="ratio",
                threshold=least,
                refs=tuple(f"name:{r.name.id}" for r in rows),
            ),
            Evidence(metric="callback_ns_per_call", value=per_call, unit="ns"),
            Evidence(metric="calls", value=calls, unit="calls"),
        ),
        cost=cost_of(view, ratio, low=0.0 if once else 0.95 * ratio, high=1.02 * ratio, each=_in_steps(steps, rows)),
        about=once,
        remedies=(
            Remedy(
                id="callback-less-often",
                text=_less_often(kind, name, some=turns is not None or few is not None),
            ),
            Remedy(id="callback-cheaper", text="or make it cheaper, or hand it to another thread"),
            general_loss.LOOK,
        ),
        explanation=(
            f"{'A MonitoredSession calls hooks' if in_session else 'Keras calls callbacks'} on the training thread; "
            "the next step starts only when they have returned."
        ),
    )


def _in_steps(steps: Steps, rows: list[NamedTime]) -> F64:
    """Time of these callbacks in each steady step, in ns."""
    return in_steps(steps, calls.of(steps, Kind.CALLBACK).named(r.name.id for r in rows).spans)


def _durations(steps: Steps, row: NamedTime) -> I64:
    """Of its calls in the steady steps; 0 for those that were too short to be recorded."""
    mine = calls.of(steps, Kind.CALLBACK).named([row.name.id])
    mine = mine.where((mine.starts >= steps.span[0]) & (mine.starts < steps.span[1]))
    return np.concatenate([mine.durations, np.zeros(max(0, row.calls - len(mine.durations)), np.int64)])


def _hottest(view: StepsView) -> HotSpot | None:
    """The function of the user's with most of the callbacks' time, if it has most of it."""
    spot = next(iter(view.hot_spots("callbacks")), None)
    return spot if spot is not None and spot.samples >= MIN_SAMPLES and spot.ratio >= MOST else None


def _inside(view: StepsView, row: NamedTime) -> str:
    """``, most of it in smooth (np.convolve)``: where below its own first line a callback spends its time."""
    spot = _hottest(view)
    if spot is None:
        return ""
    what = doing.of_spot(spot, view.source_of)
    if spot.culprit.function == row.name.text:
        return f", most of it in {what}" if what else ""
    return f", most of it in {spot.culprit.function}" + (f" ({what})" if what else "")


def _hot_places(view: StepsView) -> tuple[Place, ...]:
    spot = _hottest(view)
    return (view.place(spot.culprit.file, spot.culprit.line, function=spot.culprit.function),) if spot else ()


def _genitive(kind: str) -> str:
    return f"{kind}'" if kind.endswith("s") else f"{kind}'s"


def _turns(steps: Steps, row: NamedTime) -> Rare | None:
    """How often it does its work, if it does in some of its calls only."""
    least = concentration.recurring(_durations(steps, row))
    if least is None:
        return None
    records = steps.worker.records
    mine = (records.kind == Kind.CALLBACK) & (records.thread == steps.thread) & (records.name == row.name.id)
    found = rare.of(steps, mine & (records.dur_ns >= least))
    return found if found is not None and found.calls >= MIN_TURNS and 1 < found.high < found.low + 1 else None


def _less_often(kind: str, name: Name, *, some: bool) -> str:
    """``some``: it does its work in some of its calls only."""
    if name.hook not in SESSION_HOOKS:
        often = "less often than it does now" if some else "every N batches"
        return f"do {_genitive(kind)} work {often}, or once an epoch in on_epoch_end"
    if name.own:
        return f"do {_genitive(kind)} work only in every N-th run (tf.compat.v1.train.SecondOrStepTimer)"
    return f"give {kind} a longer interval, or leave it out"


def _place(view: StepsView, row: NamedTime) -> Place | None:
    name = row.name
    if name.own and name.file:
        return view.place(name.file, name.line, name.end_line, name.text)
    if name.hook in SESSION_HOOKS and name.call_file:
        return view.place(name.call_file, name.call_line, function=name.call_function)
    return view.fit_place()


DETECTOR = Detector(
    code="HST004",
    name="slow-callback",
    cause="API: inefficient API usage",
    introduced_stage="training",
    exposed_stage="training",
    pipeline_stage="output-processing",
    needs=frozenset({Signal.STEPS}),
    frameworks=frozenset({"keras", "tensorflow"}),
    params=Params(),
    detect=detect,
    yields_to=frozenset({"TRD001"}),
)
