"""Finds the candidates: repeating calls that may make a step, each of one kind, one meaning and one thread.

The purpose of a candidate (``Candidate.purpose``) follows from what its calls do: Keras' methods say it by name, a
tf.function trains if its graph changes variables. Calls of one tf.function that run different graphs, only some of
which change variables, are two candidates: a training and its evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope.derive.kinds import KINDS
from stepscope.derive.numeric import intervals
from stepscope.derive.steps import gaps, loops
from stepscope.derive.steps.candidate import EVALUATIONS, TRAIN_ROLES, Candidate, Place
from stepscope.model.log.events import Name, Probe, Traced
from stepscope.wire.kinds import Flag, Kind, Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.model.report.step_summary import MakerKind
    from stepscope.model.session.session import Worker
    from stepscope.tables.records import I64, Bool

    _Groups = dict[tuple[Kind, Place], list[int]]
    """Ids of names by what they share."""

MIN_CALLS = 4
"""Minimum number of calls of a candidate: fewer repetitions are no loop."""
RECURRING = 3
"""Number of long gaps from which they belong to the work (validation of every epoch)."""
LONG_GAP_FACTOR = 20
"""Length in mean steps above which a gap does not count as covered by a candidate (another phase of the program)."""
LOOP_ANCHORS = frozenset({"predict", "evaluate", "predict_on_batch", "test_on_batch"})
PREDICTIONS = frozenset({"predict", "predict_on_batch"})
JIT, JIT_CALLS = "jit", "jit_calls"
"""Role of calls of JAX's jitted functions, and the probe that sees them."""
UPDATES, READS = "updates", "reads"
"""Roles of a tf.function's calls, by whether the graph that they run changes variables."""


def of(worker: Worker) -> list[Candidate]:
    """All candidates of a process."""
    records, updates = worker.records, updating(worker)
    names = {n.id: n for n in worker.all(Name)}
    applied = bool(np.isin(records.kind, _UPDATES).any())
    trains = applied or any(updates.values()) or any(name.role in TRAIN_ROLES for name in names.values())
    groups: _Groups = {}
    in_part = gave_up(worker)
    for kind, number in (divmod(int(key), _NAMES) for key in np.unique(records.kind * _NAMES + records.name)):
        if kind in _RANKS and (number in names or kind == Kind.STEP):
            name = names.get(number) or Name(id=number, text="step")
            if in_part and kind == Kind.FUNCTION and name.role == JIT:
                continue
            groups.setdefault((Kind(kind), place_of(Kind(kind), name, updates)), []).append(number)
    found = _found(worker, names, groups, applied=applied, trains=trains)
    if not any(one.kind == Kind.SESSION_RUN for one in found):
        found += _found(worker, names, _of_changing_fetches(names, groups), applied=applied, trains=trains)
    return loops.spread(found)


def gave_up(worker: Worker) -> bool:
    """Whether calls of JAX's jitted functions were seen in a part of the run only: they show no steps then."""
    told = [line.attached for line in worker.all(Probe) if line.name == JIT_CALLS]
    return True in told and told[-1] is False


def _of_changing_fetches(names: Mapping[int, Name], groups: _Groups) -> _Groups:
    """Runs of a session by their lines: a program may ask for other fetches in each of its turns."""
    lines: _Groups = {}
    for (kind, place), ids in groups.items():
        for name in (names[number] for number in ids if kind == Kind.SESSION_RUN):
            lines.setdefault((kind, ("", name.call_file, name.call_line, place[3])), []).append(name.id)
    return lines


def _found(
    worker: Worker, names: Mapping[int, Name], groups: _Groups, *, applied: bool, trains: bool
) -> list[Candidate]:
    """The candidates among groups of names."""
    records = worker.records
    found, hooks = [], _in_hooks(worker)
    only_hooks = int(((records.kind == Kind.SESSION_RUN) & ~hooks).sum()) < MIN_CALLS  # Keras' own runs are no records
    for (kind, place), ids in groups.items():
        mine = (records.kind == kind) & np.isin(records.name, ids) & ((records.flags & Flag.END) == 0)
        if kind == Kind.SESSION_RUN and not only_hooks:
            mine &= ~hooks
        for thread in np.unique(records.thread[mine]):
            index = np.flatnonzero(mine & (records.thread == thread))
            if len(index) < MIN_CALLS:
                continue
            found.append(
                Candidate(
                    rank=_rank(kind, place[3]),
                    worker=worker,
                    thread=int(thread),
                    kind=kind,
                    name=names.get(ids[0]) or Name(id=ids[0], text="step"),
                    index=index,
                    cover_ns=_cover_ns(worker, index),
                    purpose=_purpose(kind, place[3], applied=applied, trains=trains),
                    place=place,
                )
            )
    return found


def updating(worker: Worker) -> dict[tuple[str, int], bool]:
    """Whether the graph of a traced function changes variables, itself or in what it calls, by (file, line).

    If a function's calls are named by their graph, it is the first graph; the names of the other calls show it.
    """
    traces = worker.all(Traced)
    outer = {trace.id: trace.outer for trace in traces}
    changing: set[int] = set()
    for trace in traces:
        number = trace.id if trace.updates > 0 else 0
        while number and number not in changing:
            changing.add(number)
            number = outer.get(number, 0)
    named = {(name.file, name.line) for name in worker.all(Name) if name.role in {UPDATES, READS}}
    found: dict[tuple[str, int], bool] = {}
    for trace in traces:
        place = (trace.file, trace.line)
        counts = trace.ordinal == 1 or place not in named
        found[place] = found.get(place, False) or (counts and trace.id in changing)
    return found


def place_of(kind: Kind, name: Name, updates: Mapping[tuple[str, int], bool]) -> Place:
    """The identity that calls of this name share with others of their kind."""
    role = name.role
    if kind in _BY_LINE or (kind == Kind.LOOP and role in PREDICTIONS):
        return (name.text, name.call_file, name.call_line, role)
    if kind == Kind.FUNCTION and not role and (name.file, name.line) in updates:
        role = UPDATES if updates[name.file, name.line] else READS
    return (name.text, name.file, name.line, role)


def alike(worker: Worker, kind: Kind, place: Place) -> frozenset[int]:
    """All names of a process that calls at this place have."""
    updates = updating(worker)
    return frozenset(name.id for name in worker.all(Name) if place_of(kind, name, updates) == place)


def _cover_ns(worker: Worker, index: I64) -> float:
    """Time covered by the calls, from start to start, without pauses that are another phase of the program."""
    starts = worker.records.start_ns[index]
    apart = np.diff(starts)
    broken = intervals.overlapping(gaps.periods(worker.gaps), starts[:-1], starts[1:])
    usual = np.sort(apart[~broken])
    usual = usual[: max(1, len(usual) - RECURRING + 1)]  # a first trace must not make itself usual in a short run
    long = ~broken & (apart > LONG_GAP_FACTOR * max(1.0, float(usual.mean()) if len(usual) else 0.0))
    return float(apart.sum() if long.sum() >= RECURRING else apart[~long].sum())


def _rank(kind: Kind, role: str) -> int:
    if kind == Kind.EXECUTION:
        return 1 if role in TRAIN_ROLES else 9
    if kind == Kind.LOOP:
        return 4 if role in LOOP_ANCHORS else 5
    return _RANKS[kind]


def _purpose(kind: Kind, role: str, *, applied: bool, trains: bool) -> MakerKind:
    """``applied``: something in the process trains op by op from Python; ``trains``: something in it trains."""
    if kind in kinds_with(Trait.KERAS):
        return "training" if role in TRAIN_ROLES else "evaluation" if role in EVALUATIONS else "prediction"
    if kind in _UPDATES or (kind == Kind.FUNCTION and role == UPDATES):
        return "training"
    if (role == READS and trains) or (kind == Kind.MODEL_CALL and applied):
        return "call"
    return "prediction" if role == READS or kind in kinds_with(Trait.FORWARD) else "step"


def _in_hooks(worker: Worker) -> Bool:
    """Runs made by a hook of a MonitoredSession: part of the step, not the step. Cost: O(n log n).

    In gaps nothing shows which runs are theirs, nor after the last record of a hook, where a gap may have begun whose
    end is not known yet: a name whose observed runs are mostly theirs is theirs there, too.
    """
    records, unobserved = worker.records, gaps.periods(worker.gaps)
    inside = np.zeros(len(records), bool)
    for thread in np.unique(records.thread[records.kind == Kind.CALLBACK]):
        mine = records.thread == thread
        hooks = mine & (records.kind == Kind.CALLBACK)
        spans = intervals.merge(records.start_ns[hooks], records.start_ns[hooks] + records.dur_ns[hooks])
        runs = np.flatnonzero(mine & (records.kind == Kind.SESSION_RUN))
        starts = records.start_ns[runs]
        ends = starts + records.dur_ns[runs]
        theirs = intervals.clipped_sum(starts, ends, spans) > 0
        seen = ~intervals.overlapping(unobserved, starts, ends) & (starts < spans[1].max(initial=0))
        for name in np.unique(records.name[runs[theirs]]):
            named = records.name[runs] == name
            theirs |= named & ~seen & (2 * int((theirs & named).sum()) > int((seen & named).sum()))
        inside[runs] = theirs
    return inside


_BY_LINE = kinds_with(Trait.BY_LINE)
_UPDATES = kinds_with(Trait.UPDATE)
_NAMES = 1 << 32
"""Upper limit of name ids, which have 32 bits."""
_RANKS = {kind: about.rank for kind, about in KINDS.items() if about.rank is not None}
"""Rank of each kind by how much it says about a step: the lowest says most."""
