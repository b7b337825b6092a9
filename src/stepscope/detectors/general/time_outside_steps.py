"""A large part of the run lies outside of its steady steps.

## What it detects
Each phase of the job outside of its steady steps that takes five percent of the run or more: the program's start,
imports, building up to the first step, first steps, tracing, evaluation, saving, time between steps, and the end; with
the lines that run in it. If the job has turns (calls of fit or predict at one line, or repetitions of a loop around
that of the steps: folds, trials, prompts, epochs), how long it lasts in each of them.

## Why it matters
Steps may be as fast as they can be and still be a tenth of the run. What happens in the other nine tenths is then what
can be made faster.

## Evidence
`phase_ratio`: share of the job's wall time. `phase_ns`: its time. `times`: how often it occurred, if it is counted.
`part at FILE:LINE`: share of the phase on a line. `turns`, `turn_ns`, `turn_ratio`: number of turns, the phase's time
in each, and its share of the mean turn.

## Known limits
Reported only where no specific finding explains the time. Some of these phases are wanted, and those that lie in no
turn weigh less in a longer run: no saving is claimed. One function that the loop around the steps calls between them is
above information if it takes a fifth of the turns, and not mostly within the framework, as an evaluation does; whether
each turn needs it, only the user knows. Lines rest on stack samples, 20 a second, which begin with the import of the
framework.

## Remedy
Depends on the phase: keep what was built (a saved model, prepared data), import less, trace fewer and smaller graphs,
evaluate and save less often, fewer and longer epochs. What happened once is to be looked at: it cannot be done less
often. None for what a launcher does before it starts the process of the
steps, and for what a library imports when it is first called.

## References
FSE'22 study, slow initialization; TensorFlow guide "Better performance with tf.function".
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.causes.general import phase_lines, spent_lines, turn_times
from stepscope.derive.ledger import outside
from stepscope.detectors.base import Detector, Seen, Signal, cost_of, severity_of
from stepscope.detectors.remedies import Fact
from stepscope.detectors.shared import general_loss, turn_words
from stepscope.model.report.ledger import ONCE
from stepscope.tables.findings import Evidence, Remedy
from stepscope.tables.units import Ratio, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.causes.general.phase_lines import PhaseTime
    from stepscope.causes.general.spent_lines import SpentLine
    from stepscope.causes.general.turn_times import TurnTime, TurnTimes
    from stepscope.derive.view import SessionView
    from stepscope.model.report.ledger import Phase
    from stepscope.tables.findings import Stage


class Params(general_loss.Params, frozen=True, kw_only=True):
    """Thresholds."""

    min_clear_ratio: Ratio = Ratio(0.2)
    """Of the turns' time in one function that their loop calls: above information, as in GEN012
    (docs/decisions/0057, 0065)."""
    max_framework_ratio: Ratio = Ratio(0.5)
    """Of that function's time: one that mostly runs models or ops between the steps evaluates, which is wanted. Source:
    HST001."""


_KEEP = Remedy(id="keep-what-is-built", text="prepare it once and keep it: prepared data in a file, a saved model")
_IMPORTS = Remedy(
    id="import-less",
    text="import at the start only what is needed there, and the rest where it is used (python -X importtime lists the "
    "time of each import)",
)
_LOOK = Remedy(
    id="look-at-the-start",
    text="see what it does: python -X importtime lists the time of each import; prepared data can be kept in a file",
)
_LONGER_EPOCHS = Remedy(
    id="longer-epochs",
    text="make epochs longer: more data in each, or a repeated dataset with steps_per_epoch; between them Keras ends "
    "one pass over the input and begins the next",
)
MIN_MOSTLY = 0.5
"""Share of a phase that is its subject: imports, or what a line calls."""
_TRACES = Remedy(
    id="fewer-traces",
    text="make fewer and smaller traces: one signature for each function, loops of the graph, not unrolled Python",
)
_LESS_OFTEN = Remedy(id="less-often", text="do it less often, or in another thread or process")
_EVALUATE = Remedy(id="evaluate-less-often", text="evaluate less often, on less data, or in larger batches")
_SAVE = Remedy(id="save-less-often", text="save less often, weights only, or in the background")
_PAUSE = Remedy(
    id="look-at-that-pause",
    text="see what the program does or waits for there: it happened once, not in each step or epoch",
)
_EVALUATE_LESS = Remedy(id="evaluate-less", text="evaluate on less data, or in larger batches")
_SAVE_LESS = Remedy(id="save-less", text="save weights only, or in the background")
WHAT: dict[Phase, tuple[str, tuple[Remedy, ...]]] = {
    "start": ("the program's start before it imports a framework takes", (_LOOK,)),
    "imports": ("imports take", ()),
    "building": ("building models, data and graphs before the first step takes", (_KEEP,)),
    "first-steps": ("the first steps, with their traces, take", (_TRACES,)),
    "steps": ("", ()),
    "other-steps": ("steps of other makers take", ()),
    "tracing": ("tracing outside of the steps takes", (_TRACES,)),
    "evaluation": ("evaluations between the steps take", (_EVALUATE, _EVALUATE_LESS)),
    "saving": ("saving between the steps takes", (_SAVE, _SAVE_LESS)),
    "between-steps": ("the time between the steps is", (_LESS_OFTEN, _PAUSE)),
    "end": ("the time after the last step is", ()),
    "not-seen": ("", ()),
}
"""Subject and verb of each phase's finding, and its remedies; "": it has none."""
_UNSEEN = "what comes before the first step (other imports, data, models: no stacks were sampled) takes"


def detect(view: SessionView, params: Params) -> Iterator[Seen]:
    """Yield one finding for each phase."""
    turns = view.get(turn_times.build)
    for time in itertools.chain.from_iterable(map(_split, view.get(phase_lines.build))):
        part = turns.part(time.phase) if turns is not None else None
        clear = _clear(part, params) if part is not None else None
        if turns is not None and part is not None and clear is not None:
            yield _in_turns(view, turns, part, clear)
        elif time.ratio >= params.min_ratio and WHAT[time.phase][0]:
            mine = part if part is not None and part.ratio >= params.min_ratio else None
            yield _finding(view, time, params, turns if mine is not None else None)


def _split(time: PhaseTime) -> tuple[PhaseTime, ...]:
    """A phase; of the start what another program did before the process of the steps began, and the rest."""
    if not time.launched_ns:
        return (time,)
    rest_ns = time.ns - time.launched_ns
    before = replace(time, ns=time.launched_ns, ratio=time.ratio * time.launched_ns / time.ns, lines=())
    return before, replace(time, ns=rest_ns, ratio=time.ratio * rest_ns / time.ns, launched_by="", launched_ns=0)


def _clear(part: TurnTime, params: Params) -> SpentLine | None:
    """The function that the loop of the turns calls between their steps, if it takes enough of them."""
    top = next((spent for spent in part.lines if spent.caller is not None), None)
    if part.phase != "between-steps" or top is None or top.framework > params.max_framework_ratio:
        return None
    return top if part.ratio * top.ratio >= params.min_clear_ratio else None


def _in_turns(view: SessionView, turns: TurnTimes, part: TurnTime, top: SpentLine) -> Seen:
    """One function between the steps of each turn."""
    ratio, found = part.ratio * top.ratio, turns.turns
    places = (top.place, top.caller, view.place(found.file, found.line, function=found.function))
    return Seen(
        title=f"{top.place.function} takes {format_ns(part.ns * top.ratio)} between the steps in each of "
        f"{turn_words.count(found)} of {format_ns(turns.mean_ns)}: {format_ratio(ratio)} of their time",
        severity=severity_of(ratio),
        confidence=general_loss.CONFIDENCE,
        exposed_stage="training",
        introduced_stage="training",
        where=tuple(dict.fromkeys(place for place in places if place is not None)),
        evidence=(
            Evidence(metric="turn_ratio", value=ratio, unit="ratio", refs=(f"phase:{part.phase}",)),
            Evidence(metric="turn_ns", value=part.ns * top.ratio, unit="ns"),
            Evidence(metric="turns", value=found.count, unit="turns"),
            Evidence(metric="samples", value=part.samples, unit="samples"),
        ),
        cost=cost_of(view, ratio, low=0.0, basis="modelled", ns_per_step=0, turn_ratio=ratio),
        remedies=(turn_words.ONCE, turn_words.AHEAD),
        explanation="The steps of a turn wait until it is over. Shares are of the mean turn, from one "
        f"{f'call of {found.call}' if found.call else 'repetition of the loop'} to the next.",
    )


def _finding(view: SessionView, time: PhaseTime, params: Params, turns: TurnTimes | None) -> Seen:
    """One phase. ``turns``: if a part of each turn is spent in it."""
    part = turns.part(time.phase) if turns is not None else None
    each = ""
    if turns is not None and part is not None:
        each = f", {format_ns(part.ns)} in each of {turn_words.count(turns.turns)}"
    unseen = time.phase == "building" and not time.lines and not outside.is_sampled(view.worker or view.workers[0])
    return Seen(
        title=f"{_UNSEEN if unseen else _subject(time)} {format_ratio(time.ratio)} of the run "
        f"({format_ns(time.ns)}){each}{general_loss.top_text(time.lines)}{_edge_text(time)}{_end_text(time)}",
        severity="info",
        confidence=general_loss.CONFIDENCE,
        exposed_stage=_stage(time, recurs=part is not None),
        introduced_stage=_stage(time, recurs=part is not None),
        where=tuple(dict.fromkeys(spent.place for spent in time.lines)),
        evidence=(
            Evidence(
                metric="phase_ratio",
                value=time.ratio,
                unit="ratio",
                threshold=params.min_ratio,
                refs=(f"phase:{time.phase}",),
            ),
            Evidence(metric="phase_ns", value=time.ns, unit="ns"),
            *((Evidence(metric="times", value=time.count, unit="times"),) if time.count else ()),
            *(() if part is None else (Evidence(metric="turn_ratio", value=part.ratio, unit="ratio"),)),
            *general_loss.of_lines(time.lines),
        ),
        cost=cost_of(view, 0.0, high=time.ratio, basis="unknown", ns_per_step=0),
        remedies=_remedies(time, turns),
        about=frozenset(fact for fact, holds in {Fact.UNSEEN: unseen, Fact.ONCE: time.once}.items() if holds),
        explanation="This time lies outside of the steady steps: shares of the step and costs of findings do not "
        f"include it.{_EDGES if _edge_text(time) else ''}{_lazy_text(time)}",
    )


def _subject(time: PhaseTime) -> str:
    if time.launched_by:
        return f"what {time.launched_by} does before it starts the process of the steps takes"
    if time.once and time.phase == "between-steps":
        return "a single pause between the steps takes"
    return WHAT[time.phase][0]


def _remedies(time: PhaseTime, turns: TurnTimes | None) -> tuple[Remedy, ...]:
    """Only what can change this time: a launcher's is none of the program's, and an import is no data to keep."""
    if time.phase in {"start", "imports", "building"}:
        return _remedies_of_start(time)
    if _edge_text(time):
        return (_FEWER_LOOPS,) if time.loops > 1 else ()
    if time.phase == "between-steps" and any(s.what == "fit" and s.ratio >= MIN_MOSTLY for s in time.lines):
        return _LONGER_EPOCHS, _PAUSE
    if turns is not None and time.phase == "between-steps":
        return turn_words.ONCE, turn_words.AHEAD
    if turns is not None and turns.turns.call == "fit" and time.phase == "tracing":
        return turn_words.ONE_MODEL, *WHAT[time.phase][1]
    return WHAT[time.phase][1]


def _remedies_of_start(time: PhaseTime) -> tuple[Remedy, ...]:
    if time.launched_by:
        return ()
    if (time.importing or 0.0) >= MIN_MOSTLY:
        return (_IMPORTS,)
    if time.phase == "imports" or time.lazily >= MIN_MOSTLY:  # of those that were sampled: a job needs its framework
        return ()
    if time.importing is not None:
        return (_KEEP,)
    return WHAT[time.phase][1]


_FEWER_LOOPS = Remedy(
    id="fewer-loops",
    text="call fit, evaluate and predict less often, on more data each",
)
_EDGES = (
    " Each fit, evaluate and predict makes a dataset and an iterator of what it is given, before its first callback; "
    "when it ends, it destroys the iterator, with the pipeline's threads and buffers; predict also joins "
    "its outputs."
)


def _edge_text(time: PhaseTime) -> str:
    """What Keras does in most of the time; "" if it does neither."""
    what, ns = max(time.edges, key=lambda edge: edge[1], default=("", 0))
    return f": {what} ({format_ns(ns)})" if ns >= MIN_MOSTLY * time.ns else ""


def _end_text(time: PhaseTime) -> str:
    mostly = time.finishing_ns >= MIN_MOSTLY * time.ns
    return f", {format_ns(time.finishing_ns)} of it while the interpreter finishes" if mostly else ""


def _lazy_text(time: PhaseTime) -> str:
    """What no import of the program's can change; "" if it is little."""
    if time.lazily < spent_lines.LEAST:
        return ""
    share = format_ratio(time.lazily)
    return f" {share} of it a library imports when it is first called: the program has no import there."


def _stage(time: PhaseTime, *, recurs: bool) -> Stage:
    if time.phase in ONCE and not recurs:
        return "initialization"
    return "evaluation" if time.phase == "evaluation" else "training"


DETECTOR = Detector(
    code="GEN013",
    name="time-outside-steps",
    cause="Python: interpreter overhead",
    needs=frozenset({Signal.STEPS}),
    params=Params(),
    detect=detect,
)
