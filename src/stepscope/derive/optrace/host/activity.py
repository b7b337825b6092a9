"""What the events of a host did, and for whom: for the step, or for its input pipeline.

A host's threads are shared: the step's ops, tf.data's stages and the functions called by those run on pools of them.
For whom an event worked follows from the events around it, and, across threads, from the number of the executor's run:
a run started by a tf.data stage (``InstantiatedCapturedFunction``) belongs to the pipeline, wherever its ops run.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.host import event_nesting, launching_threads, step_threads
from stepscope.derive.optrace.host.event_nesting import Nesting
from stepscope.tables.blocks import blocks, take
from stepscope.tables.optrace import Category, LineKind, PlaneKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.tables.optrace import I8, I32, U8, Line, OpTrace
    from stepscope.tables.records import I64, Bool

RUN_ID = "id"
"""Stat of executor events: the number of the function run that they belong to (the executor's ``step_id``)."""
CAPTURED = "InstantiatedCapturedFunction::"
"""Calls of a tf.data stage's function. Source: tensorflow/core/data/captured_function.cc."""
_STAGES = ("Iterator::", "MakeIterator::")
_STAGE_WORK = ("Produce", "Consume")
"""``PrefetchProduce``, ``ParallelMapConsume`` ...: a stage's own threads, and the consumers of their results."""
_GET_NEXT = ("IteratorGetNextOp::", "IteratorGetNextAsOptionalOp::", "IteratorGetNextSyncOp::")
_GET_NEXT_TYPES = frozenset(
    {
        "IteratorGetNext",
        "IteratorGetNextSync",
        "IteratorGetNextAsOptional",
        "MultiDeviceIteratorGetNextFromShard",
    }
)
LOADER = "enumerate(DataLoader)#"
"""PyTorch's name for taking a batch; the events inside make the batch. Source: torch/utils/data/dataloader.py."""
PYTHON_TRACED = "$"
"""First letter of what the profilers' Python tracer records: ``$train.py:12 step``, ``$builtins next``."""
_NEXT = re.compile(r"\$(builtins next|\S+:\d+ __next__)")
"""A tracer's name for taking the next element of anything: on the thread with the steps, a batch."""
_AROUND_OPS = frozenset(
    {
        "Case",
        "If",
        "PartitionedCall",
        "RemoteCall",
        "StatefulPartitionedCall",
        "StatelessCase",
        "StatelessIf",
        "StatelessWhile",
        "SymbolicGradient",
        "While",
    }
)
"""Ops that run other ops: their own time belongs to the runtime."""
_BLOCKED = frozenset({"KernelAndDeviceFunc::Run", "FunctionRun", "ThunkExecutor::Execute (wait for completion)"})
"""Calls of functions whose ops run on other threads."""
_RECEIVES = frozenset({"_Recv", "_HostRecv", "Recv"})
_PYTHON_OPS = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})


class Activity(IntEnum):
    """What a host did at a moment, by the innermost event."""

    OTHER = 0
    OP = 1
    PYTHON = 2
    """User Python called by the framework: a py_function in the step, a generator."""
    COLLECTIVE = 3
    COPY = 4
    COMPILE = 5
    GET_NEXT = 6
    """The step asks for its next batch."""
    LAUNCH = 7
    """Handing work to a device: the op's host side and the driver's calls."""
    RUNTIME = 8
    """The framework around ops: executor, eager dispatch, function calls."""
    WAIT = 9
    STAGE = 10
    """A stage of the input pipeline, without the functions that it calls."""


_BY_CATEGORY = {
    Category.OP: Activity.OP,
    Category.KERNEL: Activity.OP,
    Category.COPY: Activity.COPY,
    Category.COLLECTIVE: Activity.COLLECTIVE,
    Category.INPUT: Activity.STAGE,
    Category.CALL: Activity.RUNTIME,
    Category.EXECUTOR: Activity.RUNTIME,
    Category.COMPILE: Activity.COMPILE,
    Category.PYTHON: Activity.PYTHON,
    Category.RUNTIME: Activity.LAUNCH,
    Category.WAIT: Activity.WAIT,
}


class ExecutorRuns:
    """Runs of the executor, read on request."""

    def __init__(self, trace: OpTrace, nesting: Nesting, told: Bool) -> None:
        """``told``: events whose stat ``id`` is the number of their run; for a stage's event it is the stage's
        number.
        """
        self._trace = trace
        self._nesting = nesting
        self._told = told

    def _said(self) -> tuple[I64, I64]:
        """Rows of events that name their run, and its number."""
        rows, numbers = self._trace.ints_of(RUN_ID, np.flatnonzero(self._told), missing=0)
        known = np.flatnonzero(numbers)
        return (rows, numbers) if len(known) == len(rows) else (rows[known], numbers[known])

    @cached_property
    def number(self) -> I64:
        """Number of the run to which each event belongs, 0 if unknown: int64[event]."""
        number = np.zeros(len(self._trace.events), np.int64)
        rows, numbers = self._said()
        number[rows] = numbers
        self._nesting.inherit(number)
        return number

    def shared_with(self, rows: I64) -> Bool:
        """Which events belong to a run of one of the given events."""
        told, said = self._said()
        belongs = np.zeros(len(self._trace.events), np.int8)
        belongs[told] = _OTHERS
        around = np.where(belongs[rows] != 0, rows, nearest(self._nesting.parent, belongs != 0, rows))
        theirs = said[np.searchsorted(told, around[around >= 0])]
        belongs[told[_is_one_of(said, theirs)]] = _THEIRS
        self._nesting.inherit(belongs)
        shared: Bool = belongs == _THEIRS
        return shared


_OTHERS, _THEIRS = np.int8(1), np.int8(2)


class Domain(Struct, frozen=True, kw_only=True):
    """Activities of all events. Shapes: [event of the trace]. Events outside host threads are OTHER and not of the
    input.
    """

    parent: I32
    """The enclosing event, -1 for none."""
    of_input: Bool
    """Whether it works for the input pipeline. Waiting for the pipeline (``GET_NEXT``) does not count."""
    runs: ExecutorRuns
    activity: I8
    """``Activity``."""
    blocked: Bool
    """Whether its own time, without that of the events inside, is waiting for work elsewhere."""
    host: Bool
    """Whether it is on a host thread and has a duration."""
    beside: Bool
    """Whether it is on a thread that does not work for the steps (``step_threads``)."""
    loop_python: Bool
    """Whether it is a Python tracer's, and inside no op: the program's loop, and what it calls."""

    @property
    def run(self) -> I64:
        """Number of the executor's run to which each event belongs, 0 if unknown."""
        return self.runs.number

    def rows(self, *activities: Activity, of_input: bool = False) -> I64:
        """Host events of some activities, rising."""
        one_of = np.zeros(len(Activity), np.bool_)
        one_of[list(activities)] = True
        wanted = take(one_of, self.activity)
        wanted &= self.of_input == of_input
        wanted &= self.host & ~self.beside
        return np.flatnonzero(wanted)


def build(trace: OpTrace, beside: Bool | None = None) -> Domain:
    """The activity of every host event; the flag of other threads as in ``Domain``; None: all work for the steps.

    Cost: a few passes over the events, and the stats of runs and launches.
    """
    events = trace.events
    host = _host_events(trace)
    nesting = _nesting(trace)
    metas = _per_meta(trace)
    marks = take(metas.marks, events.meta)
    marks *= host
    captured = marks & _CAPTURED_MARK != 0
    runs = ExecutorRuns(trace, nesting, marks & _TOLD_MARK != 0)
    of_input = marks & (_STAGE_MARK | _CAPTURED_MARK) != 0
    if captured.any():
        of_input |= runs.shared_with(np.flatnonzero(captured)) & host & (marks & _GET_NEXT_MARK == 0)
    activity = take(metas.activity, events.meta)
    loader = marks & _LOADER_MARK != 0
    taken = _taken(trace, marks & _NEXT_MARK != 0, nesting)
    activity[taken] = Activity.GET_NEXT
    of_input = nesting.spread(of_input | loader | taken) & ~loader & ~taken
    traced = marks & _TRACED_MARK != 0
    calls_python = (activity == Activity.PYTHON) | ((activity == Activity.OP) & step_threads.by_torch(trace))
    loop_python = traced & ~taken & ~nesting.spread(~traced & calls_python)
    ran = trace.stats.of_events(StatName.HLO_OP).rows  # XLA's ops on host threads carry only their name
    activity[ran[(activity[ran] == Activity.OTHER) & host[ran]]] = Activity.OP
    launching = launching_threads.find(trace, nesting.parent, host)
    activity[launching & (activity == Activity.OP)] = Activity.LAUNCH
    compiles = host & (activity == Activity.COMPILE)
    if compiles.any():
        activity[_compiling(trace, compiles, nesting)] = Activity.COMPILE
    activity[~host] = Activity.OTHER
    waits = (activity == Activity.WAIT) | (activity == Activity.GET_NEXT) | (marks & _BLOCKED_MARK != 0)
    return Domain(
        parent=nesting.parent,
        of_input=of_input,
        runs=runs,
        activity=activity,
        blocked=host & waits,
        host=host & (events.dur_ns > 0),
        beside=np.zeros(len(events), np.bool_) if beside is None else beside,
        loop_python=loop_python & (activity == Activity.PYTHON),
    )


def _taken(trace: OpTrace, called: Bool, nesting: Nesting) -> Bool:
    """Which calls of ``next`` take a batch: the outermost ones on a thread that holds markers of steps."""
    result = np.zeros(len(called), np.bool_)
    if not called.any():
        return result
    steps = take(trace.metas.category == Category.STEP, trace.events.meta)
    threads = np.bincount(trace.events.line[steps], minlength=len(trace.lines)) > 0
    called &= take(threads, trace.events.line)
    rows = np.flatnonzero(called)
    result[rows[nearest(nesting.parent, called, rows) < 0]] = True
    return result


def _is_one_of(numbers: I64, sought: I64) -> Bool:
    """Which numbers occur in ``sought``: numbers of runs are spread over all of int64."""
    if not len(sought):
        return np.zeros(len(numbers), np.bool_)
    sought = np.sort(sought)
    sought = sought[np.append(True, sought[1:] != sought[:-1])]
    found = np.empty(len(numbers), np.bool_)
    for block in blocks(len(numbers)):
        mine = numbers[block]
        found[block] = sought.take(np.searchsorted(sought, mine), mode="clip") == mine
    return found


_STAGE_MARK, _CAPTURED_MARK, _BLOCKED_MARK, _GET_NEXT_MARK, _LOADER_MARK, _TOLD_MARK, _NEXT_MARK, _TRACED_MARK = (
    np.uint8(1 << bit) for bit in range(8)
)


class _PerMeta(Struct, frozen=True, kw_only=True):
    """Facts per kind of event. Shapes: int8[meta]."""

    marks: U8
    """Facts from its name, one bit each."""
    activity: I8


def _per_meta(trace: OpTrace) -> _PerMeta:
    names = _Texts(trace, trace.metas.name)
    types = _Texts(trace, trace.metas.op_type)
    get_next = names.where(lambda n: n.startswith(_GET_NEXT)) | types.where(lambda t: t in _GET_NEXT_TYPES)
    activity = np.zeros(len(trace.metas), np.int8)
    for category, meaning in _BY_CATEGORY.items():
        activity[trace.metas.category == category] = meaning
    activity[types.where(lambda t: t in _AROUND_OPS)] = Activity.RUNTIME
    activity[types.where(lambda t: t in _RECEIVES)] = Activity.WAIT
    activity[types.where(lambda t: t in _PYTHON_OPS)] = Activity.PYTHON
    loader = names.where(lambda n: n.startswith(LOADER))
    activity[get_next | loader] = Activity.GET_NEXT
    stage = names.where(lambda n: n.startswith(_STAGES) or (n.endswith(_STAGE_WORK) and "/" not in n))
    activity[stage] = Activity.STAGE
    captured = names.where(lambda n: n.startswith(CAPTURED))
    executor = np.isin(trace.metas.category, [Category.EXECUTOR, Category.CALL, Category.INPUT]) | captured
    traced_by_torch = (trace.metas.category == Category.PYTHON) & step_threads.by_torch(trace)
    marks = np.zeros(len(trace.metas), np.uint8)
    for mark, marked in (
        (_STAGE_MARK, stage),
        (_CAPTURED_MARK, captured),
        (_BLOCKED_MARK, names.where(lambda n: n in _BLOCKED or (n.startswith(CAPTURED) and not n.endswith("Async")))),
        (_GET_NEXT_MARK, get_next),
        (_LOADER_MARK, loader),
        (_TOLD_MARK, executor & ~stage),
        (_NEXT_MARK, names.where(lambda n: _NEXT.fullmatch(n) is not None)),
        (_TRACED_MARK, names.where(lambda n: n.startswith(PYTHON_TRACED)) | traced_by_torch),
    ):
        marks[marked] |= mark
    return _PerMeta(marks=marks, activity=activity)


class _Texts:
    """A text column of the metas. Most texts match nothing, and each is examined once."""

    def __init__(self, trace: OpTrace, column: I32) -> None:
        used = np.flatnonzero(np.bincount(column, minlength=1)).tolist()
        texts = ((i, trace.strings[i]) for i in used)
        self._telling = [
            (i, t) for i, t in texts if t in _TELLING or t.startswith(_TELLING_HEADS) or t.endswith(_STAGE_WORK)
        ]
        self._column = column
        self._strings = len(trace.strings)

    def where(self, holds: Callable[[str], bool]) -> Bool:
        """The metas whose text satisfies ``holds``: one of ``_TELLING``, or with such a head or end."""
        chosen = np.zeros(self._strings, np.bool_)
        chosen[[i for i, text in self._telling if holds(text)]] = True
        found: Bool = chosen[self._column]
        return found


_TELLING = _BLOCKED | _RECEIVES | _AROUND_OPS | _GET_NEXT_TYPES | _PYTHON_OPS
_TELLING_HEADS = (*_GET_NEXT, *_STAGES, CAPTURED, LOADER, PYTHON_TRACED)


def _host_lines(trace: OpTrace) -> list[Line]:
    host = [line for line in trace.lines_of(LineKind.THREAD) if not line.derived]
    return [line for line in host if trace.planes[line.plane].kind is PlaneKind.HOST]


def _host_events(trace: OpTrace) -> Bool:
    host = np.zeros(len(trace.events), np.bool_)
    for line in _host_lines(trace):
        host[line.slice] = True
    return host


def _nesting(trace: OpTrace) -> Nesting:
    """Nesting of the events of host threads."""
    parent = np.full(len(trace.events), -1, np.int32)
    depth = np.zeros(len(trace.events), np.int32)
    for line in _host_lines(trace):
        above, depth[line.slice] = event_nesting.nest(
            trace.events.start_ns[line.slice], trace.events.dur_ns[line.slice]
        )
        above[above >= 0] += line.first
        parent[line.slice] = above
    return Nesting(parent=parent, levels=event_nesting.levels(depth))


def nearest(parent: I32, wanted: Bool, rows: I64) -> I64:
    """The nearest wanted event around each of ``rows``: int64[row], -1 for none."""
    above: I64 = parent[rows].astype(np.int64)
    while True:
        passed = np.flatnonzero((above >= 0) & ~wanted[above])
        if not len(passed):
            return above
        above[passed] = parent[above[passed]]


def _compiling(trace: OpTrace, flag: Bool, nesting: Nesting) -> Bool:
    """Compilers' passes, which have names of their own, and JAX calls that trace and compile before they run."""
    jitted = np.array([text.startswith("PjitFunction(") for text in trace.strings], np.bool_)[trace.names()]
    calls = np.zeros(len(flag), np.bool_)
    for row in np.flatnonzero(flag).tolist():
        at = int(nesting.parent[row])
        while at >= 0 and not calls[at]:
            calls[at] = bool(jitted[at])
            at = int(nesting.parent[at])
    return nesting.spread(flag | calls)
