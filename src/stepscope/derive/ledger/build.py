"""Builds the ledgers of a session: that of the job, and one for each maker of steps if they are several threads.

Every part comes from separate records: the start from the launcher and the log's first line, imports from the import
hook and, before the first step, from stack samples; steps from their calls; evaluations, tracing, saving and building
from their records, Python outside of steps from stack samples, steps in gaps from counted calls. Only *not seen* is a
remainder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.ledger import imports, in_steps, life, outside, own_steps, pauses, unobserved
from stepscope.derive.ledger.life import between as interval
from stepscope.derive.ledger.outside import Layer
from stepscope.derive.ledger.part import Ledger, LedgerPart
from stepscope.derive.ledger.unobserved import UnobservedSteps
from stepscope.derive.numeric import intervals
from stepscope.derive.steps.step_candidates import RECURRING
from stepscope.model.report.ledger import PHASES
from stepscope.wire.kinds import Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.derive.ledger.in_steps import InSteps
    from stepscope.derive.ledger.life import Life
    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.steps.step_makers import Maker
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.report.ledger import Phase
    from stepscope.model.session.session import Session, Worker

    Wait = Callable[[Steps], float]
    """Input wait inside the compiled call of the mean step of some steps, ns."""

MAX_LEDGERS = 8
"""Maximum number of ledgers of makers."""
_CALLS = (*kinds_with(Trait.COMPUTES), Kind.LOOP)


class _Scope(Struct, frozen=True, kw_only=True):
    """What a ledger is about."""

    worker: Worker
    life: Life
    steps: InSteps | None
    others: Sequence[Maker]
    """Makers of steps other than those of ``steps``."""
    threads: tuple[int, ...]


def ledgers(session: Session, workers: Sequence[Worker], makers: Sequence[Maker], wait: Wait) -> tuple[Ledger, ...]:
    """The job's ledger, then those of the makers if they are several threads or processes. Empty if no process was
    measured.

    Args:
        session: the session.
        workers: its processes, with joined threads.
        makers: all makers of steps, the main ones first.
        wait: input wait inside the compiled call of a mean step.
    """
    if not workers or not any(worker.info.started_ns or len(worker.records) for worker in workers):
        return ()
    job = _of_job(session, workers, makers, wait)
    apart = [number for number, maker in enumerate(makers) if _elsewhere(maker.steps, makers[0].steps)]
    numbers = [0, *apart][:MAX_LEDGERS] if apart else []
    return (job, *(_of_maker(session, makers, number, wait) for number in numbers))


def _elsewhere(steps: Steps, main: Steps) -> bool:
    """Whether steps are made on another thread than the main ones, so that the job's ledger does not show them."""
    return steps.worker is not main.worker or steps.thread != main.thread


def _of_job(session: Session, workers: Sequence[Worker], makers: Sequence[Maker], wait: Wait) -> Ledger:
    """The ledger of the job, along the thread that makes its steps."""
    worker = makers[0].steps.worker if makers else max(workers, key=_computing)
    steps = makers[0].steps if makers else None
    main = life.main_thread(worker)
    threads = {main} if main is not None else set()
    threads |= {steps.thread} if steps is not None else _calling(worker)
    return _ledger(
        _Scope(
            worker=worker,
            life=life.of(worker, session.manifest),
            steps=in_steps.build(own_steps.of(steps), wait(steps)) if steps is not None else None,
            others=[maker for maker in makers[1:] if maker.steps.worker is worker],
            threads=tuple(sorted(threads)),
        )
    )


def _of_maker(session: Session, makers: Sequence[Maker], number: int, wait: Wait) -> Ledger:
    """The ledger of one maker, along its busiest thread: of its process if it is another one than the job's, else from
    its first step to its last.
    """
    steps = makers[number].steps
    own = own_steps.of(steps)
    lived = life.of(steps.worker, session.manifest)
    if steps.worker is makers[0].steps.worker:
        begin, end = own.begin_ns, max(int(steps.ends[-1]), *_span_ends(steps))
        lived = life.Life(begin_ns=begin, armed_ns=begin, imports=intervals.empty(), exit_ns=end, end_ns=end)
    scope = _Scope(
        worker=steps.worker,
        life=lived,
        steps=in_steps.build(own, wait(steps)),
        others=[one for i, one in enumerate(makers) if i != number and one.steps.worker is steps.worker],
        threads=(steps.thread,),
    )
    return replace(_ledger(scope), maker=number)


def _span_ends(steps: Steps) -> tuple[int, ...]:
    return (steps.span[1],) if steps.steady.any() else (0,)


def _computing(worker: Worker) -> tuple[bool, int]:
    """How much a process looks like the one that the job is about."""
    records = worker.records
    return bool(np.isin(records.kind, _CALLS).any()), len(records)


def _calling(worker: Worker) -> set[int]:
    """Threads that compute."""
    records = worker.records
    return set(records.thread[np.isin(records.kind, _CALLS)].tolist())


def _ledger(scope: _Scope) -> Ledger:
    """One ledger."""
    lived = scope.life
    start: Phase = "start" if len(lived.imports[0]) else "not-seen"  # without a framework the program runs by then
    begun = LedgerPart(phase=start, ns=lived.armed_ns - lived.begin_ns, spans=interval(lived.begin_ns, lived.armed_ns))
    frameworks = _part("imports", lived.imports, count=len(lived.imports[0]))
    shown = _shown(scope)
    broken = _broken(scope, shown)
    first, later = _observed(scope)
    claimed = (begun.spans, frameworks.spans, first.spans, later, broken)
    room = lived.window
    for spans in claimed:
        room = intervals.without(room, spans)
    painted, room = outside.painted(shown, room)
    python, unseen = _python(scope, room)
    counted = _counted(scope, painted, python, broken)
    parts = _with_steps(scope.steps, [begun, frameworks, first, *painted, *python], counted)
    parts.append(LedgerPart(phase="not-seen", ns=unseen + counted.unseen_ns))
    return Ledger(
        worker=scope.worker,
        threads=scope.threads,
        wall_ns=intervals.total(lived.window),
        parts=_merged(parts),
        exit_ns=lived.end_ns - lived.exit_ns,
        overlap_ns=_double(claimed) + counted.overlap_ns,
        pace=counted.pace,
    )


def _part(phase: Phase, spans: Intervals, count: int = 0) -> LedgerPart:
    """A part that lasted for these times."""
    return LedgerPart(phase=phase, ns=intervals.total(spans), count=count, spans=spans)


def _observed(scope: _Scope) -> tuple[LedgerPart, Intervals]:
    """The first steps, and when later ones were observed."""
    if scope.steps is None:
        return _part("first-steps", intervals.empty()), intervals.empty()
    first = scope.steps.first
    spans = intervals.without(first.spans, scope.life.imports)
    return replace(first, ns=intervals.total(spans), spans=spans), scope.steps.later


def _broken(scope: _Scope, shown: Sequence[Layer]) -> Intervals:
    """When steps were not observed, without what records show of that time, without the pauses seen in it, and without
    the time in which other calls were counted and none of the steps'.
    """
    if scope.steps is None:
        return intervals.empty()
    own = scope.steps.own
    broken = intervals.clip(scope.steps.broken, scope.life.window)
    for spans in (
        pauses.counted_none(own),
        pauses.hooks(own, own.steps.worker.in_gaps),
        pauses.calls_of_keras(own),
        intervals.clip(unobserved.silent(own), outside.counted(scope.worker, scope.threads)),
        *(layer.spans for layer in shown),
    ):
        broken = intervals.without(broken, spans)
    return broken


def _counted(
    scope: _Scope, painted: Sequence[LedgerPart], python: Sequence[LedgerPart], broken: Intervals
) -> UnobservedSteps:
    """The steps in gaps, and what lies between them unseen."""
    if scope.steps is None:
        return UnobservedSteps(count=0, parts={})
    own = scope.steps.own
    between = next((part.spans for part in python if part.phase == "between-steps"), intervals.empty())
    loops, observed = own_steps.holding_loops(own.steps), intervals.without(between, scope.steps.broken)
    inside = intervals.clip(observed, loops) if len(loops[0]) else observed
    return in_steps.counted(scope.steps, broken, pauses.hidden(own, inside), _others_missed(scope, painted))


def _others_missed(scope: _Scope, painted: Sequence[LedgerPart]) -> dict[Phase, float]:
    """Observed time of other makers' calls that gaps do not record: it stands for that in gaps if it recurs."""
    found: dict[Phase, float] = {}
    for part in painted:
        spans = intervals.clip(part.spans, _calls(scope, part.phase, missed=True))
        if len(spans[0]) >= RECURRING:
            found[part.phase] = float(intervals.total(spans))
    return found


def _calls(scope: _Scope, phase: Phase, *, missed: bool = False) -> Intervals:
    """Calls of other makers on these threads in a phase. ``missed``: of kinds that gaps do not record alone."""
    found = [
        intervals.merge(one.candidate.starts, one.candidate.ends)
        for maker in scope.others
        for one in maker.threads
        if one.thread in scope.threads and not (missed and one.kind in kinds_with(Trait.STAYS))
        if phase == ("evaluation" if maker.purpose == "evaluation" else "other-steps")
    ]
    return _union(found)


def _with_steps(steps: InSteps | None, parts: Sequence[LedgerPart], counted: UnobservedSteps) -> list[LedgerPart]:
    """The parts with those of the steps."""
    if steps is None:
        return list(parts)
    outer, moved = _moved(steps, parts)
    between_ns = counted.parts.get("", 0)
    extra = LedgerPart(phase="between-steps", ns=between_ns, unobserved_ns=between_ns)
    others = [LedgerPart(phase=phase, ns=ns, unobserved_ns=ns) for phase, ns in counted.others.items()]
    return [*outer, *steps.parts(counted, moved), extra, *others]


def _moved(steps: InSteps, parts: Sequence[LedgerPart]) -> tuple[list[LedgerPart], dict[str, int]]:
    """The parts without what records in gaps show of components of the observed steps; and the time of these."""
    outer, moved = [], {}
    for part in parts:
        inside = intervals.clip(part.spans, steps.broken) if part.phase in steps.observed else intervals.empty()
        if len(inside[0]):
            moved[str(part.phase)] = intervals.total(inside)
            spans = intervals.without(part.spans, inside)
            outer.append(replace(part, ns=intervals.total(spans), spans=spans))
        else:
            outer.append(part)
    return outer, moved


def _merged(parts: Sequence[LedgerPart]) -> tuple[LedgerPart, ...]:
    """One part for each phase and component, in the order of a job's life; components of the step by their time."""
    found: dict[tuple[Phase, str], LedgerPart] = {}
    for part in parts:
        key = part.phase, part.component
        before = found.get(key)
        found[key] = part if before is None else _joined(before, part)
    _unite(found, ("steps", "saving"), ("saving", ""))
    kept = [part for part in found.values() if part.ns > 0]
    return tuple(sorted(kept, key=lambda part: (PHASES.index(part.phase), -part.ns)))


def _unite(found: dict[tuple[Phase, str], LedgerPart], one: tuple[Phase, str], other: tuple[Phase, str]) -> None:
    """Join two parts of the same kind in the larger one: short saves count as steps, long ones lie between steps."""
    if one in found and other in found:
        small, large = sorted((one, other), key=lambda key: found[key].ns)
        found[large] = _joined(found[large], found.pop(small))


def _joined(one: LedgerPart, other: LedgerPart) -> LedgerPart:
    return replace(
        one,
        ns=one.ns + other.ns,
        unobserved_ns=one.unobserved_ns + other.unobserved_ns,
        count=one.count + other.count if one.phase == other.phase else one.count,
        spans=intervals.union(one.spans, other.spans),
    )


def _double(claimed: Sequence[Intervals]) -> int:
    """Time that several of these claim."""
    starts, ends = (np.concatenate(side) for side in zip(*claimed, strict=True))
    return sum(intervals.total(spans) for spans in claimed) - intervals.total(intervals.merge(starts, ends))


def _shown(scope: _Scope) -> list[Layer]:
    """What records show outside of steps, topmost first."""
    steps = scope.steps.own.steps if scope.steps is not None else None
    evaluations = own_steps.evaluations(scope.worker, steps, scope.threads)
    evaluated, others = intervals.union(evaluations, _calls(scope, "evaluation")), _calls(scope, "other-steps")
    found = [
        Layer(phase="evaluation", spans=evaluated, count=len(evaluated[0])),
        *outside.layers(scope.worker, scope.threads),
        Layer(phase="other-steps", spans=others, count=len(others[0])),
    ]
    if steps is None:
        records = outside.on_threads(scope.worker, scope.threads)
        spans = outside.spans_of(records.take(np.isin(records.kind, _CALLS)))
        found.append(Layer(phase="first-steps", spans=spans, count=len(spans[0])))
    return found


def _union(found: Sequence[Intervals]) -> Intervals:
    starts, ends = (np.concatenate(side) for side in zip(intervals.empty(), *found, strict=True))
    return intervals.merge(starts, ends)


def _python(scope: _Scope, room: Intervals) -> tuple[list[LedgerPart], int]:
    """What is left outside of steps and was seen: before the first step, between steps, after the last; and
    how much was not seen.
    """
    lived = scope.life
    calls = outside.spans_of(outside.on_threads(scope.worker, scope.threads))
    seen = intervals.union(calls, outside.sampled(scope.worker, scope.threads))
    seen = intervals.union(seen, outside.counted(scope.worker, scope.threads))
    if scope.steps is not None:
        seen = intervals.union(seen, pauses.counted_none(scope.steps.own))
    first, last = _active(scope)
    if scope.steps is not None and not outside.is_sampled(scope.worker):  # then the first and the last step say it
        seen = intervals.union(seen, intervals.union(interval(lived.begin_ns, first), interval(last, lived.end_ns)))
    seen = intervals.clip(intervals.union(seen, interval(lived.exit_ns, lived.end_ns)), room)
    periods: tuple[tuple[Phase, int, int], ...] = (
        ("building", lived.begin_ns, first),
        ("between-steps", first, last),
        ("end", last, lived.end_ns),
    )
    imported = intervals.clip(imports.sampled(scope.worker, scope.threads), interval(lived.begin_ns, first))
    found = [_part("imports", intervals.clip(seen, imported))]
    others = intervals.without(seen, imported)
    found += [_part(phase, intervals.clip(others, interval(begin, end))) for phase, begin, end in periods]
    return found, intervals.total(room) - intervals.total(seen)


def _active(scope: _Scope) -> tuple[int, int]:
    """Begin of the first step, of whatever maker or evaluation, and end of the last."""
    layers = [layer.spans for layer in _shown(scope) if layer.phase in {"evaluation", "other-steps", "first-steps"}]
    if scope.steps is not None:
        own = scope.steps.own
        made = interval(own.begin_ns, int(own.steps.ends[-1]))
        layers += [made, scope.steps.broken, own_steps.holding_loops(own.steps)]
    spans = _union(layers)
    if not len(spans[0]):
        return scope.life.exit_ns, scope.life.exit_ns
    return int(spans[0][0]), int(spans[1][-1])
