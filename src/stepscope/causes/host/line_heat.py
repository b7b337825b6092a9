"""Which lines of the user's code a session names, and what they are known to cost the steps.

A line is **seen** if a record names it or the body of its function:

- ``sample``: a stack sample of any thread of any process, at any time of the run, has it or its function on the stack,
  or that of a look at the memory;
- ``call``: something was called or made there: a timed call, a trace, a dataset, an iterator, a model;
- ``function``: a function that a record names (traced, given to a dataset, called back) covers it;
- ``node``: it made an op of a graph that was read.

Its **heat** is the share of the steady wall time that the place is known to cost: never a guess, and 0 for a line that
was only seen. It is known in two cases:

- calls that are timed one by one and whose whole time belongs to the line: saving, summaries, loading and building;
- stack samples of the steps' thread within the steady steps whose innermost user line is this one. Time inside a
  compiled call is not counted: it is the work that the line requests, however it is written. Neither is tracing, which
  is reported by function, or a line that only leads to another user line. Waiting for the input counts if the caller
  asks for it: it is the input's cost, not that of the loop's header.

Serves the report, which joins findings with the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import proportion
from stepscope.derive.python import stack_samples
from stepscope.model.log.events import (
    ChildStarted,
    Code,
    DatasetMade,
    IteratorMade,
    ModelBuilt,
    Name,
    ProcessStarted,
    PyFunctionMade,
    Stack,
    Traced,
)
from stepscope.model.log.memory import MemoryHeld
from stepscope.model.log.program import Setting, ThreadDied
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.derive.python.stack_samples import Sample
    from stepscope.derive.view import SessionView
    from stepscope.model.event import Frame
    from stepscope.model.log.events import AnyEvent
    from stepscope.model.log.graph import GraphTable
    from stepscope.model.report.components import ComponentName
    from stepscope.model.session.session import Worker

Reason = Literal["sample", "call", "function", "node"]

WHOLE = kinds_with(Trait.WHOLE)
QUALIFIED_SINCE = (3, 11)
"""The first Python whose code objects know their qualified names."""
_MODULE = "<module>"
_LOCALS = ".<locals>"


class Heat(Struct, frozen=True, kw_only=True):
    """Known cost of a range of lines: a share of the steady wall time with its 95 % interval."""

    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    samples: int = 0
    """Number of samples on these lines; 0 if calls were timed."""


class _Spent(Struct, frozen=True):
    """Samples of the steps' thread on one line, of one component."""

    line: int
    component: ComponentName | Literal[""]
    weight_ns: int
    samples: int


class HotLines:
    """What a session knows about lines. Files have the names that the session uses (absolute)."""

    def __init__(self, view: SessionView) -> None:
        self._reasons: dict[str, dict[int, set[Reason]]] = {}
        self._functions: dict[str, set[str]] = {}
        """Qualified names; before Python 3.11 a stack holds plain ones, stored here as ``*.name``."""
        self._ranges: dict[str, set[tuple[int, int]]] = {}
        for worker in view.workers:
            self._name(worker)
        self._spent = _spent(view.samples, view.loop)
        self._whole_ns = stack_samples.weight_of(view.samples)
        self._samples = len(view.samples)
        self._timed = _timed(view)

    def seen(self, file: str, first: int, last: int, function: str = "") -> frozenset[Reason]:
        """Why lines are seen; empty when they are not.

        Args:
            file: absolute path.
            first: first line.
            last: last line.
            function: qualified name of the function that they stand in, "" at the top of the module.
        """
        named = self._reasons.get(file, {})
        found = {reason for line in range(first, last + 1) for reason in named.get(line, ())}
        if any(start <= last and first <= end for start, end in self._ranges.get(file, ())):
            found.add("function")
        functions = self._functions.get(file, ())
        if function.replace(_LOCALS, "") in functions or f"*.{function.rpartition('.')[2]}" in functions:
            found.add("sample")
        return frozenset(found)

    def heat(self, file: str, first: int, last: int, *, waits: bool = False) -> Heat:
        """Known cost of lines.

        Args:
            file: absolute path.
            first: first line.
            last: last line.
            waits: count the time in which they wait for the next batch.
        """
        timed = min(1.0, sum(ratio for line, ratio in self._timed.get(file, ()) if first <= line <= last))
        mine = [
            spent
            for spent in self._spent.get(file, ())
            if first <= spent.line <= last and (waits or spent.component != "input-wait")
        ]
        sampled = sum(spent.weight_ns for spent in mine) / self._whole_ns if mine and self._whole_ns else 0.0
        if timed >= sampled:
            return Heat(ratio=timed, low=timed, high=timed)
        low, high = proportion.interval(sampled, self._samples)
        return Heat(ratio=sampled, low=low, high=high, samples=sum(spent.samples for spent in mine))

    def hottest(self, limit: int, least: float = 0.005) -> tuple[tuple[str, int, float], ...]:
        """(file, line, share of the steady wall time) of the lines that cost most, waiting for input included."""
        lines = {(file, spent.line) for file, parts in self._spent.items() for spent in parts}
        lines |= {(file, line) for file, parts in self._timed.items() for line, _ in parts}
        rows = [(file, line, self.heat(file, line, line, waits=True).ratio) for file, line in lines]
        return tuple(sorted((r for r in rows if r[2] >= least), key=lambda r: (-r[2], r[0], r[1]))[:limit])

    def files(self) -> tuple[str, ...]:
        """Files with seen lines, in descending order of cost to the steps."""
        spent = {file: sum(s.weight_ns for s in parts) for file, parts in self._spent.items()}
        every = {*self._reasons, *self._functions, *self._ranges}
        return tuple(sorted(every, key=lambda file: (-spent.get(file, 0), -len(self._reasons.get(file, ())), file)))

    def _name(self, worker: Worker) -> None:
        codes = {code.id: code for code in worker.all(Code) if code.own}
        head = "*." if _plain_names(worker) else ""
        for stack in worker.all(Stack):
            for number, line in stack.frames:
                if (code := codes.get(number)) is not None:
                    self._note(code.file, line, "sample")
                    function = "" if code.function == _MODULE else head + code.function.replace(_LOCALS, "")
                    self._functions.setdefault(code.file, set()).add(function)
        for look in worker.all(MemoryHeld):
            self._note_look(look, head)
        for file, line in _nodes(worker.graphs):
            self._note(file, line, "node")
        for event in worker.events:
            for file, line in _calls(event):
                self._note(file, line, "call")
            for file, first, last in _bodies(event):
                if file and first:
                    self._ranges.setdefault(file, set()).add((first, max(first, last)))

    def _note_look(self, look: MemoryHeld, head: str) -> None:
        for file, name, line in look.stack:
            self._note(file, line, "sample")
            function = "" if name == _MODULE else head + name.replace(_LOCALS, "")
            self._functions.setdefault(file, set()).add(function)

    def _note(self, file: str, line: int, reason: Reason) -> None:
        if file and line > 0:
            self._reasons.setdefault(file, {}).setdefault(line, set()).add(reason)


def _plain_names(worker: Worker) -> bool:
    """Whether the process's Python knows functions only by their plain names."""
    started = next(iter(worker.all(ProcessStarted)), None)
    numbers = [int(part) for part in (started.python if started else "").split(".")[:2] if part.isdecimal()]
    return len(numbers) == len(QUALIFIED_SINCE) and tuple(numbers) < QUALIFIED_SINCE


def _nodes(table: GraphTable) -> Iterator[tuple[str, int]]:
    """(file, line) of the code that made nodes of graphs, each once."""
    made = table.line > 0
    for file, line in np.unique(np.stack([table.file[made], table.line[made]]), axis=1).T.tolist():
        yield table.strings[file], line


def _calls(event: AnyEvent) -> Iterator[tuple[str, int]]:
    """(file, line) of the calls and constructions of an event."""
    if isinstance(event, Name):
        yield event.call_file, event.call_line
    elif isinstance(event, (DatasetMade, ModelBuilt, Setting, ChildStarted, ThreadDied)):
        yield event.file, event.line
    if isinstance(event, (Traced, DatasetMade, IteratorMade, PyFunctionMade)):
        yield from _lines(event.stack)


def _lines(stack: Sequence[Frame]) -> Iterator[tuple[str, int]]:
    for file, _, line in stack:
        yield file, line


def _bodies(event: AnyEvent) -> Iterator[tuple[str, int, int]]:
    """(file, first line, last line) of functions."""
    if isinstance(event, Name | Traced):
        yield event.file, event.line, event.end_line
    elif isinstance(event, DatasetMade):
        yield event.fn_file, event.fn_line, event.fn_end_line


def _spent(taken: Sequence[Sample], loop: tuple[str, str] | None) -> dict[str, tuple[_Spent, ...]]:
    """Time of the steps' thread by file, line and component."""
    weights: dict[tuple[str, int, ComponentName | Literal[""]], list[int]] = {}
    for sample in taken:
        culprit = sample.culprit
        if culprit is None or not _counts(sample, loop):
            continue
        total = weights.setdefault((culprit.file, culprit.line, sample.component), [0, 0])
        total[0] += sample.weight_ns
        total[1] += 1
    found: dict[str, list[_Spent]] = {}
    for (file, line, component), (weight, count) in weights.items():
        found.setdefault(file, []).append(_Spent(line, component, weight, count))
    return {file: tuple(parts) for file, parts in found.items()}


def _counts(sample: Sample, loop: tuple[str, str] | None) -> bool:
    """Whether a sample's time belongs to its line: not to a graph, and not to building one.

    Inside a step's call, user Python that the framework calls (a layer that runs eagerly) belongs to its line.
    """
    if sample.component != "call":
        return sample.component != "tracing"
    return stack_samples.inside_call(sample, loop)


def _timed(view: SessionView) -> dict[str, list[tuple[int, float]]]:
    """(line, share of the steady wall time) of calls whose whole time belongs to their line, by file."""
    found: dict[str, list[tuple[int, float]]] = {}
    steps = view.steps
    if steps is not None and steps.steady_ns:
        for row in view.named_times(*WHOLE):
            if row.name.call_file and row.name.call_line:
                share = row.total_ns / steps.steady_ns
                found.setdefault(row.name.call_file, []).append((row.name.call_line, share))
    return found
