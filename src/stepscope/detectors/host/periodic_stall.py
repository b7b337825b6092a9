"""Something interrupts the steps every N steps or every T seconds.

## What it detects
Steps that take much longer than usual and recur with a period - in steps or in seconds - and what runs with that
period: a garbage collection, Python of the loop, a callback, another thread of the job, another process.

## Why it matters
A job whose median step is fine may lose a third of its time to something that is easy to miss because it is rare.

## Evidence
`stall_ratio`: share of the steady wall time in the stalls beyond what the same part usually takes. `stall_ns`: one
stall. `period_steps`: steps from one to the next, where all between were timed. `period_ns`: the median interval.
`regular_ratio`: share of the intervals that are the period or a small multiple of it; for random stalls it is one in
five. `stalls`: their number.

## Known limits
At least five stalls are needed. Ends of epochs with their validation, checkpoints and retraces are reported by other
detectors or are intended. Stalls of the compiled call are named unknown if no thread, process or line runs with the
period.

## Remedy
Do it less often, make it cheaper, overlap it with the steps, or drop it; for garbage collections `gc.freeze()` after
loading, or fewer objects.

## References
Python documentation of gc.freeze; FSE'22 study; training-pipeline analysis (Rand 2020), utilisation dips with a period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.host import statement_role
from stepscope.causes.input import data_loader_wait, input_cause
from stepscope.causes.system import stalls
from stepscope.derive import unmeasured
from stepscope.derive.python import loop_source
from stepscope.detectors.base import Detector, Seen, Signal, Undecided, cost_of
from stepscope.detectors.remedies import Fact
from stepscope.detectors.shared import loop_python
from stepscope.model.report.components import COMPONENTS, Trait, components_with, stage_in_step
from stepscope.tables.findings import Cause, Evidence, Remedy
from stepscope.tables.place import Place
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.system.stalls import Stalls
    from stepscope.derive.python.stack_samples import Spot
    from stepscope.derive.steps_view import StepsView


class Params(Struct, frozen=True, kw_only=True):
    """Thresholds."""

    min_ratio: Ratio = Ratio(0.03)
    """Of steady wall time: the least that a report calls low."""
    min_stall_ns: int = 5_000_000
    """Per stall: anything shorter is hardly an interruption."""


_SKIPPED = components_with(Trait.STALL_EXPLAINED)
_COLLECT = "gc.collect("


def detect(view: StepsView, params: Params) -> Iterator[Seen | Undecided]:
    """Yield one finding per part of the step that stalls periodically."""
    steps = view.steps
    cause = view.get(input_cause.build)
    outside = cause is not None and cause.limit in {"network", "disk"}
    for stall in view.get(stalls.build):
        if outside and stall.component == "input-wait":  # the network or the disk, not the code that reads from it
            continue
        ratio = stall.excess_ns / steps.steady_ns
        if stall.component in _SKIPPED or ratio < params.min_ratio or stall.stall_ns < params.min_stall_ns:
            continue
        yield _finding(view, stall, ratio, params)


def _finding(view: StepsView, stalls: Stalls, ratio: float, params: Params) -> Seen:
    collected = _collect_place(view) if stalls.component == "gc" else None
    who, unseen = _who(view, stalls, collected), _is_unseen(view, stalls)
    often = stalls.often
    every = often.often("step", "steps") if often and not stalls.by_time else f"every {format_ns(stalls.period_ns)}"
    return Seen(
        title=f"{who} interrupts the steps {every} for {format_ns(stalls.stall_ns)}: {format_ratio(ratio)} of the time",
        confidence=0.6 if who.startswith("something") else 0.9,
        cause="unknown" if unseen else _cause(stalls),
        introduced_stage="environment setting" if _is_rival(stalls) else "training",
        pipeline_stage=stage_in_step(stalls.component),
        where=_places(view, stalls, collected),
        evidence=(
            Evidence(
                metric="stall_ratio",
                value=ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(f"component:{stalls.component}",),
            ),
            Evidence(metric="stall_ns", value=stalls.stall_ns, unit="ns", threshold=params.min_stall_ns),
            *((Evidence(metric="period_steps", value=often.every, unit="steps"),) if often else ()),
            Evidence(metric="period_ns", value=stalls.period_ns, unit="ns"),
            Evidence(metric="regular_ratio", value=stalls.regular_ratio, unit="ratio"),
            Evidence(
                metric="stalls",
                value=stalls.count,
                unit="stalls",
                refs=tuple(f"step:{number}" for number in stalls.first_steps[:20]),
            ),
        ),
        cost=cost_of(view, ratio, low=0.9 * ratio, high=1.05 * ratio, each=view.anatomy.per_step_of(stalls.component)),
        remedies=_remedies(view, stalls, collected=collected is not None),
        about=frozenset({Fact.UNSEEN}) if unseen else frozenset(),
        explanation="The stalls lie in the part of the step that the report calls "
        f"{COMPONENTS[stalls.component].word}; {format_ratio(stalls.regular_ratio)} of their intervals are regular."
        + (f" A wait for batches, {unmeasured.framework(view)}'s work, or the machine." if unseen else ""),
    )


def _is_rival(stalls: Stalls) -> bool:
    return stalls.component == "call" and stalls.thread_spot is None and bool(stalls.rival)


def _is_unseen(view: StepsView, stalls: Stalls) -> bool:
    """Whether no record and no sample says what runs in the stalls, and the work of the steps is not measured."""
    return stalls.component == "other-python" and stalls.spot is None and unmeasured.framework(view) != ""


def _calls_unmeasured(view: StepsView, stalls: Stalls) -> bool:
    """Whether what runs in the stalls may be the framework's work, which is not measured: an evaluation, say."""
    if stalls.component in components_with(Trait.TORCH):
        return True
    return stalls.component == "other-python" and unmeasured.framework(view) not in {"", unmeasured.NUMPY}


def _takes_batch(view: StepsView, spot: Spot) -> bool:
    """Whether the line takes the next element of something, for all that is known of the steps."""
    if not loop_source.takes_element(view.source_of(spot.file) or "", spot.line):
        return False
    mine = [
        s for s in view.hot_spots("other-python") if (s.culprit.file, s.culprit.function) == (spot.file, spot.function)
    ]
    return all(statement_role.build(view, s) in {"feeds", "call", "unknown"} for s in mine if spot.line in s.lines)


def _who(view: StepsView, stalls: Stalls, collected: Place | None) -> str:
    match stalls.component:
        case "gc":
            who = "gc.collect()" if collected is not None else "Python's garbage collection"
        case "callbacks" if stalls.name is not None:
            who = f"the callback {stalls.name.text}"
        case "call" if stalls.thread_spot is not None:
            who = f"another thread, in {stalls.thread_spot.function},"
        case "call":
            who = f"the process {stalls.rival}" if stalls.rival else "something unknown inside the step's call"
        case "input-wait":
            who = "the input"
        case _ if _is_unseen(view, stalls):
            who = "something that was not seen"
        case _ if stalls.spot is not None and _takes_batch(view, stalls.spot):
            who = "the wait for a batch"
        case _ if stalls.spot is not None:
            slow = "" if _calls_unmeasured(view, stalls) else "slow Python in "
            who = f"{slow}{loop_python.who(view, stalls.spot)}"
        case _:
            who = f"something unknown in {COMPONENTS[stalls.component].word}"
    return who


def _cause(stalls: Stalls) -> Cause:
    if stalls.component == "call" and stalls.thread_spot is None:
        return "System: scheduling" if stalls.rival else "unknown"
    return COMPONENTS[stalls.component].cause


def _collect_place(view: StepsView) -> Place | None:
    """The line of the loop's source that calls gc.collect."""
    if view.loop is None:
        return None
    for number, line in enumerate((view.source_of(view.loop[0]) or "").split("\n"), 1):
        if _COLLECT in line.partition("#")[0]:
            return view.place(view.loop[0], number)
    return None


def _places(view: StepsView, stalls: Stalls, collected: Place | None) -> tuple[Place, ...]:
    places = [collected] if collected is not None else []
    loader = data_loader_wait.build(view) if stalls.component == "input-wait" else None
    if loader is not None and loader.made.file:
        places.append(view.place(loader.made.file, loader.made.line, function=loader.made.function))
    name = stalls.name
    if name is not None and name.own and name.file:
        places.append(view.place(name.file, name.line, name.end_line, name.text))
    spots = (stalls.thread_spot,) if stalls.component == "call" else (stalls.spot,)
    places += [view.place(s.file, s.line, function=s.function) for s in spots if s is not None]
    fit = view.fit_place()
    if fit is not None and not places:
        places.append(fit)
    elif stalls.statement is not None and not _is_rival(stalls):
        places.append(view.place(stalls.statement.file, stalls.statement.line, function=stalls.statement.function))
    elif view.loop is not None and view.call_line is not None and not _is_rival(stalls):
        places.append(view.place(view.loop[0], view.call_line, function=view.loop[1]))
    return tuple(dict.fromkeys(places))


def _remedies(view: StepsView, stalls: Stalls, *, collected: bool) -> tuple[Remedy, ...]:
    if stalls.component == "gc":
        freeze = Remedy(
            id="freeze-objects",
            text="call gc.freeze() once after loading, so that long-lived objects are not scanned again; or keep fewer "
            "objects",
        )
        less = Remedy(id="do-not-collect", text="take gc.collect() out of the loop: reference counts free tensors")
        return (less, freeze) if collected else (freeze,)
    if _is_rival(stalls):
        return (
            Remedy(
                id="separate-cpu",
                text=f"run {stalls.rival} at another time, at low priority (nice -n 19), or on other cores",
            ),
        )
    if stalls.component == "input-wait":
        return (Remedy(id="prefetch-deeper", text="prefetch more batches, and open the next file early (interleave)"),)
    spot = stalls.thread_spot if stalls.component == "call" else stalls.spot
    if spot is not None and _takes_batch(view, spot):
        return (_AHEAD,)
    cheaper = (
        Remedy(id="vectorise", text="make it cheaper: vectorise it with NumPy, or compute it in the compiled step"),
        Remedy(id="move-off-thread", text="or hand it to another process, so that the next step can start"),
    )
    if stalls.component == "other-python" and spot is not None and loop_python.is_loop(view, spot):
        return cheaper
    doer = stalls.name.text if stalls.name is not None else spot.function if spot is not None else "the code there"
    less = Remedy(id="do-it-less-often", text=f"run {doer} less often, or once at the end")
    return (_FIND_OUT, less) if _calls_unmeasured(view, stalls) else (_FIND_OUT, less, *cheaper)


_AHEAD = Remedy(id="batches-ahead", text="make batches ahead, in more threads or processes, and keep more ready")
_FIND_OUT = Remedy(
    id="find-what-stalls",
    text="find out what runs then: stepscope.span() around the parts of the loop, first around the next() that takes a "
    "batch; if that waits, make batches ahead in more threads or processes",
)


DETECTOR = Detector(
    code="HST009",
    name="periodic-stall",
    exposed_stage="training",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
    yields_to=frozenset(
        {"GRF001", "HST004", "HST005", "HST006", "INP001", "INP002", "INP003", "INP015", "INP017", "TRD001"}
    ),
)
