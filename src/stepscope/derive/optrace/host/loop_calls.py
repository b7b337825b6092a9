"""What the training loop calls between the framework's calls, and who makes its batches, by a Python tracer's events.

JAX's profiler (and TensorFlow's, if asked) records every Python call: ``$train.py:12 score`` with the file's last name,
``$builtins next`` for a function written in C. The loop's own calls are those directly inside a step. A batch that the
steps wait for is made by the calls that other threads run meanwhile: the outermost function of a generator that works
is named, and the function written in C in which it spends most of its time says what it does.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace.host import activity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64, Bool

_CALL = re.compile(r"\$(?P<file>\S+\.py):(?P<line>\d+) (?P<function>.+)")
_BUILTIN = re.compile(r"\$\S+ (?P<function>\w+)")
BLOCKS = frozenset({"acquire", "wait", "get", "put", "_acquire_restore", "join", "sleep", "select", "poll"})
"""Functions in which a thread waits for another one."""
_SLEEP = "sleep"
RECEIVES = frozenset({"recv", "recv_into", "recvfrom", "readinto", "read"})
"""Functions in which a thread reads from a socket or a file."""
_SOCKET = "socket.py"
_LIBRARY = frozenset(
    [
        "queue.py",
        "thread.py",
        "threading.py",
        "socket.py",
        "ssl.py",
        "contextlib.py",
        "profiler.py",
        "resource_tracker.py",
        "numeric.py",
        "fromnumeric.py",
        "_methods.py",
        "shape_base.py",
        "stride_tricks.py",
    ]
)
"""Files of the standard library, NumPy and JAX's profiler that stand between a program and its wait, or its work."""


_INNER = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>"})
"""Functions that are parts of another one. A lambda has its line."""
INSTALLED = ("/site-packages/", "/dist-packages/", "dummy_file_name")
"""Parts of the paths of files that are no program's own; JAX writes a path for compiled functions only."""


class CalledFunction(Struct, frozen=True, kw_only=True):
    """A Python function of the program."""

    function: str
    file: str
    """Last part of its path."""
    line: int

    def __str__(self) -> str:
        """``score (train.py:12)``."""
        return f"{self.function} ({self.file}:{self.line})"


class Producer(Struct, frozen=True, kw_only=True):
    """Who makes the batches that the steps wait for."""

    call: CalledFunction
    ratio: float
    """Share of the wait in which it runs."""
    receiving_ratio: float
    """Share of its time in which it reads from a socket."""


def shares(trace: OpTrace, domain: Domain, line: int, steps: I64, windows: Intervals) -> Mapping[CalledFunction, float]:
    """The calls of the loop on a line, with their share of some times, largest first. ``steps``: their starts."""
    total = intervals.total(windows)
    if line < 0 or not total:
        return {}
    mine = np.zeros(len(domain.host), np.bool_)
    mine[trace.lines[line].slice] = True
    outer = _directly_inside_a_step(trace, domain, steps, np.flatnonzero(mine & domain.loop_python))
    found: Counter[CalledFunction] = Counter()
    spent = intervals.clipped_sum(trace.events.start_ns[outer], trace.events.end_ns[outer], windows)
    for row, ns in zip(outer.tolist(), spent.tolist(), strict=True):
        call = call_of(trace, row)
        if call is not None and ns:
            found[call] += ns
    return {call: ns / total for call, ns in found.most_common()}


def producer(trace: OpTrace, domain: Domain, line: int, waiting: Intervals) -> Producer | None:
    """Who makes the batches while the steps on a line wait for them."""
    total = intervals.total(waiting)
    if line < 0 or not total:
        return None
    others = domain.host & _traced(trace)
    others[trace.lines[line].slice] = False
    rows = np.flatnonzero(others)
    events = trace.events
    spent = intervals.clipped_sum(events.start_ns[rows], events.end_ns[rows], waiting)
    rows, spent = rows[spent > 0], spent[spent > 0]
    own = np.zeros(len(events), np.int64)
    own[rows] = spent
    inside = activity.nearest(domain.parent, others, rows)  # annotations of a library stand between calls
    np.subtract.at(own, inside[inside >= 0], spent[inside >= 0])
    made, received = _by_maker(trace, domain, rows[own[rows] > 0], own)
    if not made:
        return None
    call, ns = made.most_common(1)[0]
    return Producer(call=call, ratio=min(1.0, ns / total), receiving_ratio=received[call] / ns)


def call_of(trace: OpTrace, row: int) -> CalledFunction | None:
    """The Python function of an event; None for one written in C."""
    match = _CALL.fullmatch(_name(trace, row))
    return CalledFunction(function=match["function"], file=match["file"], line=int(match["line"])) if match else None


def _by_maker(
    trace: OpTrace, domain: Domain, rows: I64, own: I64
) -> tuple[Counter[CalledFunction], Counter[CalledFunction]]:
    """(time that each function spends, itself or in the library, without waits for threads; its part in sockets)."""
    made: Counter[CalledFunction] = Counter()
    received: Counter[CalledFunction] = Counter()
    known: dict[tuple[int, int], _Maker] = {}
    program = _of_program(trace)
    for row in rows.tolist():
        match = _BUILTIN.fullmatch(_name(trace, row))
        leaf = match["function"] if match else ""
        call = call_of(trace, row)
        blocked = leaf in BLOCKS or (call is not None and call.function in BLOCKS)
        if blocked and leaf != _SLEEP:
            continue
        parent = int(domain.parent[row])
        key = (parent, int(trace.events.meta[row]))
        if key not in known:
            known[key] = _maker(trace, domain, row, program)
        maker = known[key]
        if maker.call is not None and (maker.asked or not blocked):
            made[maker.call] += int(own[row])
            received[maker.call] += int(own[row]) if maker.by_socket and leaf in RECEIVES else 0
    return made, received


def _of_program(trace: OpTrace) -> frozenset[str]:
    """Last parts of the files in which the program's own compiled functions are written."""
    frames = {frame.file for program in trace.programs for op in program.ops for frame in op.frames}
    return frozenset(file.rpartition("/")[2] for file in frames if not any(part in file for part in INSTALLED))


class _Maker(NamedTuple):
    """Who a call works for."""

    call: CalledFunction | None = None
    """The nearest function outside the standard library and NumPy."""
    by_socket: bool = False
    """Whether a function of sockets stands between."""
    asked: bool = False
    """Whether a library calls this function of the program: what it sleeps is no thread's wait for work."""


def _maker(trace: OpTrace, domain: Domain, row: int, program: frozenset[str]) -> _Maker:
    at, by_socket, found = row, False, _Maker()
    while at >= 0:
        call = call_of(trace, at)
        if call is not None and call.file not in _LIBRARY and call.function not in _INNER:
            if found.call is None:
                found = _Maker(call, by_socket)
            elif found.call.file in program and call.file not in program:
                return found._replace(asked=True)
        by_socket = by_socket or (call is not None and call.file == _SOCKET)
        at = int(domain.parent[at])
    return found


def _directly_inside_a_step(trace: OpTrace, domain: Domain, steps: I64, rows: I64) -> I64:
    """Calls in a step whose caller had begun before the step: a marker may begin within one call and end in another."""
    around = activity.nearest(domain.parent, domain.loop_python, rows)
    start = trace.events.start_ns
    step = np.searchsorted(steps, start[rows], side="right")
    before = np.where(around >= 0, np.searchsorted(steps, start[np.maximum(around, 0)], side="right"), 0)
    return rows[(step > 0) & (before < step)]


def _traced(trace: OpTrace) -> Bool:
    metas = np.array([trace.strings[i].startswith("$") for i in trace.metas.name.tolist()], np.bool_)
    found: Bool = metas[trace.events.meta]
    return found


def _name(trace: OpTrace, row: int) -> str:
    return trace.strings[int(trace.metas.name[trace.events.meta[row]])]
