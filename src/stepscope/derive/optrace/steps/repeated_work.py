"""Work that repeats on a thread: the steps of a trace without markers, whatever wrote it.

A loop shows as calls that follow each other alike, turn by turn: ``model_run`` of ONNX Runtime, a ``record_function``
around each batch, ``Optimizer.step``, PyTorch's ops, functions that a tracer of Python recorded. Looked at are the
outermost events of a thread; where one of them takes most of the time and occurs once (``<module>``, ``main``), those
inside it.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.host import event_nesting
from stepscope.tables.optrace import Category, LineKind, PlaneKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.tables.optrace import Line, OpTrace
    from stepscope.tables.records import I64

MIN_TURNS = 3
"""Fewer calls show no loop."""
MIN_ALIKE = 0.8
"""Share of the turns with the same calls from which a named call makes the steps: some batches are also logged."""
MIN_PART = 0.5
"""Of a thread's time: how much the turns must cover, and an event around them must take."""
MIN_BUSY = 0.25
"""Of the busiest thread's repeated work: threads with less are not the loop's."""
_CANDIDATES = 8
"""Kinds of calls that are tried on a level, those with the most time first."""
_NUMBERED = re.compile(r"(?P<stem>.*?\D)?[\s#_:-](?P<number>\d+)")
_MEANT = frozenset({Category.OTHER, Category.PYTHON})
"""Categories of spans that a program or a runtime named. An op often occurs several times in a step."""
_ONCE = ("Optimizer.step#",)
"""What a framework itself puts around a part that each step has once. Source: PyTorch, torch/optim/optimizer.py."""


class TurnCalls(Struct, frozen=True, kw_only=True):
    """The calls that begin the turns of a loop."""

    name: str
    line: Line
    rows: I64
    """Rows of ``OpTrace.events``."""
    dur_ns: I64
    """From the beginning of each to the end of the last call before the next."""
    named: bool
    """Whether they are spans with a name of their own, not ops."""
    busy_ns: int
    """Time of all events of their level, from the first turn on."""


def find(trace: OpTrace) -> TurnCalls | None:
    """The repeated work of the thread that runs the loop; None if no thread repeats anything for most of its time."""
    found = [turns for line in _threads(trace) if (turns := _of_line(trace, line)) is not None]
    most = max((turns.busy_ns for turns in found), default=0)
    busy = [turns for turns in found if turns.busy_ns >= MIN_BUSY * most]
    return max(busy, key=lambda turns: (turns.named, turns.busy_ns), default=None)


def _threads(trace: OpTrace) -> Iterator[Line]:
    for line in trace.lines_of(LineKind.THREAD):
        if trace.planes[line.plane].kind is PlaneKind.HOST and not line.derived and line.last - line.first >= MIN_TURNS:
            yield line


def _of_line(trace: OpTrace, line: Line) -> TurnCalls | None:
    """The outermost level of a thread on which calls repeat."""
    start, dur = trace.events.start_ns[line.slice], trace.events.dur_ns[line.slice]
    parent, _ = event_nesting.nest(start, dur)
    level = np.flatnonzero((parent < 0) & (dur > 0))
    whole = int((start + dur).max() - start.min())
    while len(level):
        turns = _of_level(trace, line, line.first + level, whole)
        if turns is not None:
            return turns
        around = int(level[dur[level].argmax()])
        if dur[around] < MIN_PART * whole:
            return None
        level = np.flatnonzero((parent == around) & (dur > 0))
    return None


def _of_level(trace: OpTrace, line: Line, rows: I64, whole: int) -> TurnCalls | None:
    """The kind of call with the most time that begins a turn like the others."""
    if len(rows) < MIN_TURNS:
        return None
    kinds, names = _kinds(trace, rows)
    start, dur = trace.events.start_ns[rows], trace.events.dur_ns[rows]
    code = np.random.default_rng(0).integers(1, 1 << 62, len(names))  # sums of codes tell sets of calls apart
    passed = np.append(0, np.cumsum(code[kinds]))
    total = np.bincount(kinds, weights=dur, minlength=len(names))
    ranked = np.argsort(-total, kind="stable")[:_CANDIDATES].tolist()
    for kind in [i for i, name in enumerate(names) if name.startswith(_ONCE)] + ranked:
        at = np.flatnonzero(kinds == kind)
        if len(at) < MIN_TURNS or int(start[at[-1]] + dur[at[-1]] - start[at[0]]) < MIN_PART * whole:
            continue
        named = int(trace.metas.category[trace.events.meta[rows[at[0]]]]) in _MEANT
        if _alike(np.diff(passed[at])) >= (MIN_ALIKE if named else 1.0):
            last = np.append(at[1:] - 1, len(rows) - 1)
            return TurnCalls(
                name=names[kind],
                line=line,
                rows=rows[at],
                dur_ns=start[last] + dur[last] - start[at],
                named=named,
                busy_ns=int(dur[at[0] :].sum()),
            )
    return None


def _alike(turns: I64) -> float:
    """Share of the turns, without the first, that hold the same calls: the first often sets something up."""
    later = turns[1:] if len(turns) > 1 else turns
    return float(np.unique(later, return_counts=True)[1].max() / len(later))


def _kinds(trace: OpTrace, rows: I64) -> tuple[I64, list[str]]:
    """The kind of each event, and their names: ``batch 3`` and ``batch 4`` are one kind, if each occurs once."""
    metas, first, inverse, count = np.unique(
        trace.events.meta[rows], return_index=True, return_inverse=True, return_counts=True
    )
    names = [trace.strings[i] for i in trace.metas.name[metas].tolist()]
    series: dict[str, list[tuple[int, int, int]]] = {}
    for i, name in enumerate(names):
        match = _NUMBERED.fullmatch(name)
        if match and count[i] == 1:
            series.setdefault(match["stem"] or "", []).append((int(first[i]), int(match["number"]), i))
    kind_of = np.arange(len(names))
    for stem, members in series.items():
        members.sort()
        numbers = [number for _, number, _ in members]
        if len(members) >= MIN_TURNS and all(a < b for a, b in pairwise(numbers)):
            kind_of[[i for *_, i in members]] = members[0][2]
            names[members[0][2]] = stem
    return kind_of[inverse], names
