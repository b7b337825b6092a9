"""The steps of an op trace and their durations.

A trace shows steps in several ways, often in more than one: markers set by the program (``train`` with a step number;
Keras' ``Profiled batch``; kineto's ``ProfilerStep#7``), the profiler's own ``Steps`` line of a device, runs of one
compiled program on a device, calls of one compiled function, or other work that repeats. All of them are returned, the
best evidence first; ``Steps.how`` and ``Steps.name`` say which it is. The first and the last step are kept, and
flagged: the capture may have begun or ended in the middle of them.

xprof wants the stat ``_r`` on markers and drops the first and last step; a stock Keras 3 capture has no ``_r``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.derive.optrace.steps import repeated_work
from stepscope.readers import run_metadata
from stepscope.tables.blocks import take
from stepscope.tables.optrace import Category, Line, LineKind, PlaneKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool

_NUMBER = re.compile(r"(?:.*[#\s])?(\d+)")
_COUNTED = re.compile(r"(?P<stem>.*?\D)(?P<number>\d+)")
_SEPARATORS = "#_:- "
_CALLS = re.compile(r"EagerLocalExecute: (?P<tf>__inference_.+)|PjitFunction\((?P<jax>.+)\)|(?P<ort>model_run)")
"""Calls that repeat in a job. ONNX Runtime's: onnxruntime/core/session/inference_session.cc."""
_TRAINING, _EVALUATIONS = "train", frozenset({"test", "predict"})
"""Markers of tf_keras: those of an evaluation are no steps where there are those of training. Source: tf_keras 2.21,
tf_keras/src/engine/training.py.
"""
PROFILER_STEP = "ProfilerStep"
"""PyTorch's markers, without their numbers."""
MIN_CALLS = 2
"""A function called once is no step."""


class StepKind(str, Enum):
    """How steps were recognised, in order of preference."""

    MARKER = "marker"
    """The program, or its framework, marked them on a host thread."""
    DEVICE_LINE = "device line"
    """The profiler's ``Steps`` line of a device."""
    PROGRAM = "program runs"
    """Runs of the compiled program with the most time on a device."""
    CALL = "function calls"
    """Calls of the compiled function with the most time on a host thread, or of what repeats there."""
    SESSION = "runs of the session"
    """Calls of ONNX Runtime's ``run``."""
    RUN = "run"
    """Each traced run of a session."""


class Steps(Struct, frozen=True, kw_only=True):
    """Steps recognised in one way on one line. Shapes: [step], sorted by start."""

    how: StepKind
    name: str
    """Name of the marker, the program or the function; for a device line the plane's."""
    line: int
    """Index into ``OpTrace.lines``; -1 for a single run."""
    event: I64
    """Row of ``OpTrace.events``; -1 for a single run."""
    number: I64
    """Number given by the program; -1 if there is none."""
    start_ns: I64
    dur_ns: I64
    edge: Bool
    """Whether it is the first or the last, and so perhaps not whole."""

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.start_ns)

    @property
    def numbered(self) -> bool:
        """Whether the program, or its framework, numbered them, rising."""
        return self.how is StepKind.MARKER and bool((self.number >= 0).all() and (np.diff(self.number) > 0).all())

    @property
    def whole_ns(self) -> I64:
        """Durations of the steps that are not at an edge; of all if there are no others."""
        inner = self.dur_ns[~self.edge]
        return inner if len(inner) else self.dur_ns


def find(trace: OpTrace) -> tuple[Steps, ...]:
    """All ways in which the trace shows steps, the best evidence first; empty if it shows none."""
    if trace.source.format == run_metadata.FORMAT:
        return tuple(_runs(trace))
    return tuple([*_markers(trace), *_device_lines(trace), *_programs(trace)] or [*_calls(trace)] or _repeated(trace))


def _markers(trace: OpTrace) -> Iterator[Steps]:
    """One for each name of marker and thread; those that contain others last, then the longest total first."""
    numbers: I64 | None = None
    groups: list[tuple[str, Line, I64]] = []
    marker = trace.metas.category == Category.STEP
    for line in trace.lines_of(LineKind.THREAD, LineKind.OTHER):
        rows = line.first + np.flatnonzero(take(marker, trace.events.meta[line.slice]))
        if not len(rows) or trace.planes[line.plane].kind is not PlaneKind.HOST:
            continue
        if numbers is None:
            numbers = trace.ints(StatName.STEP_NUM)
        known = numbers[rows].tolist()
        texts = [trace.strings[i] for i in trace.metas.name[trace.events.meta[rows]].tolist()]
        names = _stems(texts, known)
        # A tf.function may have the marker's name, and is recorded within it.
        groups += [(name, line, _outermost(trace, rows[[n == name for n in names]])) for name in dict.fromkeys(names)]
    trains = any(name == _TRAINING for name, _, _ in groups)
    beside = {name for name, _, _ in groups if trains and name in _EVALUATIONS}
    ranked = sorted(
        groups,
        key=lambda g: (_holds_another(trace, g, groups), g[0] in beside, -int(trace.events.dur_ns[g[2]].sum())),
    )
    for name, line, each in ranked:
        rows = _begun(trace, name, each)
        number = _named(trace, rows)
        if numbers is not None:
            number = np.where(numbers[rows] >= 0, numbers[rows], number)
        yield _steps(trace, StepKind.MARKER, name, line, rows, number)


def _begun(trace: OpTrace, name: str, rows: I64) -> I64:
    """Markers without PyTorch's last one if no op ran in it: a loop that ends within the profiler's active steps leaves
    the marker of a step that never was.
    """
    if name != PROFILER_STEP or len(rows) < MIN_CALLS:
        return rows
    start, end = trace.events.start_ns, trace.events.end_ns
    before, last = rows[-2:].tolist()
    ops = start[np.isin(trace.categories(), (Category.OP, Category.KERNEL, Category.RUNTIME))]
    worked = [((ops >= start[row]) & (ops < end[row])).any() for row in (before, last)]
    return rows[:-1] if worked == [True, False] else rows


def _holds_another(trace: OpTrace, group: tuple[str, Line, I64], groups: list[tuple[str, Line, I64]]) -> bool:
    """Whether a marker contains several of another kind, as an epoch contains steps."""
    name, line, rows = group
    start, end = trace.events.start_ns[rows], trace.events.end_ns[rows]
    for other, other_line, other_rows in groups:
        if other == name or other_line is not line:
            continue
        begin = trace.events.start_ns[other_rows]
        which = np.searchsorted(start, begin, "right") - 1
        inside = (which >= 0) & (trace.events.end_ns[other_rows] <= end[which])
        if inside.any() and int(np.bincount(which[inside]).max()) > 1:
            return True
    return False


def _stems(names: list[str], numbers: list[int]) -> list[str]:
    """Names of markers without the numbers of their steps: ``ProfilerStep`` for ``ProfilerStep#7``, ``train`` for
    ``train_7`` of step 7. A number that does not count with the steps belongs to the name: that of ``gpt2``.
    """
    offsets: dict[str, set[int]] = defaultdict(set)
    kinds: dict[str, set[str]] = defaultdict(set)
    stems = []
    for name, number in zip(names, numbers, strict=True):
        match = _COUNTED.fullmatch(name)
        stem = match["stem"] if match and (number >= 0 or match["stem"][-1] in _SEPARATORS) else ""
        stems.append(stem)
        if match and stem:
            offsets[stem].add(int(match["number"]) - number if number >= 0 else 0)
            kinds[stem].add(name)
    counted = {stem for stem in offsets if offsets[stem] == {0} or len(offsets[stem]) == 1 < len(kinds[stem])}
    return [
        (stem.rstrip(_SEPARATORS) or name) if stem in counted else name.partition("#")[0]
        for name, stem in zip(names, stems, strict=True)
    ]


def _device_lines(trace: OpTrace) -> Iterator[Steps]:
    for line in trace.lines_of(LineKind.STEPS):
        rows = np.arange(line.first, line.last)
        if len(rows):
            yield _steps(trace, StepKind.DEVICE_LINE, trace.planes[line.plane].name, line, rows, _named(trace, rows))


def _named(trace: OpTrace, rows: I64) -> I64:
    """Numbers contained in names."""
    texts = [_NUMBER.fullmatch(trace.strings[i]) for i in trace.metas.name[trace.events.meta[rows]].tolist()]
    return np.array([int(match[1]) if match else -1 for match in texts], np.int64)


def _programs(trace: OpTrace) -> Iterator[Steps]:
    """The program with the most time on each core, if it ran more than once."""
    for line in trace.lines_of(LineKind.XLA_MODULES):
        rows = _dominant(trace, line, None)
        if rows is not None:
            name = trace.strings[trace.metas.name[trace.events.meta[rows[0]]]]
            yield _steps(trace, StepKind.PROGRAM, name, line, rows, np.full(len(rows), -1, np.int64))


def function_calls(trace: OpTrace) -> Bool:
    """Which kinds of events are calls of compiled functions: bool[meta]."""
    return np.array([_CALLS.fullmatch(trace.strings[i]) is not None for i in trace.metas.name.tolist()], np.bool_)


def _calls(trace: OpTrace) -> Iterator[Steps]:
    """The function with the most time in calls, over all host threads."""
    best: tuple[int, Line, I64] | None = None
    wanted = function_calls(trace)
    for line in trace.lines_of(LineKind.THREAD):
        rows = _dominant(trace, line, wanted)
        total = int(trace.events.dur_ns[rows].sum()) if rows is not None else 0
        if rows is not None and (best is None or total > best[0]):
            best = (total, line, rows)
    if best is not None:
        _, line, rows = best
        match = _CALLS.fullmatch(trace.strings[trace.metas.name[trace.events.meta[rows[0]]]])
        name = (match["tf"] or match["jax"] or f"({match['ort']})") if match else ""
        how = StepKind.SESSION if match and match["ort"] else StepKind.CALL
        yield _steps(trace, how, name, line, rows, np.full(len(rows), -1, np.int64))


def _repeated(trace: OpTrace) -> Iterator[Steps]:
    """What else repeats on a host thread, turn by turn."""
    turns = repeated_work.find(trace)
    if turns is not None:
        steps = _steps(trace, StepKind.CALL, turns.name, turns.line, turns.rows, _named(trace, turns.rows))
        yield replace(steps, dur_ns=turns.dur_ns)


def _runs(trace: OpTrace) -> Iterator[Steps]:
    """Each run is one step, from its first event to the end of its last; only with several runs does a line give
    times.
    """
    if not len(trace.events):
        return
    line = next(iter(trace.lines_of(LineKind.STEPS)), None)
    if line is not None:
        rows = np.arange(line.first, line.last)
        number, start, dur = _named(trace, rows), trace.events.start_ns[rows], trace.events.dur_ns[rows]
    else:
        rows = number = np.array([-1], np.int64)
        start = trace.events.start_ns.min(keepdims=True)
        dur = trace.events.end_ns.max(keepdims=True) - start
    yield Steps(
        how=StepKind.RUN,
        name=run_metadata.RUN,
        line=line.index if line is not None else -1,
        event=rows,
        number=number,
        start_ns=start,
        dur_ns=dur,
        edge=np.zeros(len(rows), np.bool_),
    )


def _dominant(trace: OpTrace, line: Line, wanted: Bool | None) -> I64 | None:
    """The events of the kind with the most time on a line, outermost ones only; None if it occurred once."""
    meta = trace.events.meta[line.slice]
    weights = trace.events.dur_ns[line.slice].astype(np.float64)
    if wanted is not None:
        weights = weights * wanted[meta]
    if not len(meta) or not weights.any():
        return None
    rows = _outermost(trace, line.first + np.flatnonzero(meta == np.bincount(meta, weights=weights).argmax()))
    return rows if len(rows) >= MIN_CALLS else None


def _outermost(trace: OpTrace, rows: I64) -> I64:
    """Events of one line without those that lie in another of them."""
    start, end = trace.events.start_ns[rows], trace.events.end_ns[rows]
    reached = np.maximum.accumulate(end)[:-1]
    outermost: I64 = rows[np.append(True, (start[1:] >= reached) | (end[1:] > reached))]
    return outermost


def _steps(trace: OpTrace, how: StepKind, name: str, line: Line, rows: I64, number: I64) -> Steps:
    edge = np.zeros(len(rows), np.bool_)
    edge[[0, -1]] = True
    return Steps(
        how=how,
        name=name,
        line=line.index,
        event=rows,
        number=number,
        start_ns=trace.events.start_ns[rows],
        dur_ns=trace.events.dur_ns[rows],
        edge=edge,
    )
