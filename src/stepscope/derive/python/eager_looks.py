"""What the looks at eager code saw within the steady steps (``model.log.eager``), added up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.model.log.eager import EagerOp, EagerOps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stepscope.derive.steps.steps import Steps

MIN_WITHIN = 0.5
"""Share of a look's time that must lie between the start of the first steady step and the end of the last. In between,
steps that are only counted, while the recording of calls rests, run the same code."""
DISPATCH_NS = 40_000
"""Most that the runtime's dispatch of one op takes, unless ops without work show more. Source: such ops, Keras 3 on a
busy CPU; docs of ``derive.python.eager`` for what Python takes."""
WITHOUT_WORK = frozenset(
    {"ExpandDims", "Identity", "NoOp", "Rank", "ReadVariableOp", "Reshape", "Shape", "Size", "Squeeze", "StopGradient"}
)
"""Types of ops that compute nothing, whatever the size of their inputs: all of their time is dispatch."""
MIN_WITHOUT_WORK = 20
"""Number of such ops from which they say what dispatch takes on this machine."""
LONG = 0.5
"""Share of the longest look's ops from which a look says what is computed again: a shorter one may end before anything
is."""
PYTHON_NS = 500_000
"""Most that Python takes for one op, with the layers around it, where dispatch takes DISPATCH_NS. Measured: 54 us an op
in a beam search with Keras' cells, alone on a core. What is beyond that copies or converts data, or computes, and no
graph saves it."""
NOTHING_NEW_RATIO = 0.02
"""Share of ops that give something new below which a loop does the same from turn to turn: a benchmark."""


class EagerLooks(Struct, frozen=True, kw_only=True):
    """All looks together."""

    looks: int
    ns: int
    """Time of the looks, without what noting took."""
    ops: int
    ops_ratio: float
    """Share of the time in ops, those of graph functions among them: the rest is Python's, or waits."""
    fresh_ratio: float
    """Share of the ops in the second halves of the looks that gave something new."""
    again_ratio: float
    """Share of the second halves' time in ops that gave what they gave before, with Python's between two of them."""
    rows: tuple[EagerOp, ...]
    """Ops by type, line and layer."""

    def ratio(self, of: Callable[[EagerOp], float], rows: Iterable[EagerOp] | None = None) -> float:
        """A time summed over some rows, as a share of that of the looks."""
        return sum(map(of, self.rows if rows is None else rows)) / self.ns

    @property
    def python_ratio(self) -> float:
        """Most that Python takes for its ops."""
        slower = self.dispatch_ns / DISPATCH_NS
        return min(1.0 - self.ops_ratio, self.ops * PYTHON_NS * slower / self.ns)

    @property
    def dispatch_ns(self) -> float:
        """Most that the dispatch of one op takes on this machine, as busy as it is."""
        idle = [row for row in self.rows if row.op in WITHOUT_WORK]
        count = sum(row.count for row in idle)
        return max(DISPATCH_NS, sum(row.ns for row in idle) / count) if count >= MIN_WITHOUT_WORK else DISPATCH_NS

    @property
    def dispatch_ratio(self) -> float:
        """Most that the runtime's dispatch takes: long ops compute for the rest."""
        each = self.dispatch_ns
        return self.ratio(lambda row: min(row.ns, row.count * each))

    @property
    def most_dispatch_ratio(self) -> float:
        """The same with all runs of the types that took no longer than dispatch somewhere: what others took longer may
        be a wait for a CPU.
        """
        fastest: dict[str, float] = {}
        for row in self.rows:
            fastest[row.op] = min(fastest.get(row.op, math.inf), row.ns / max(1, row.count))
        each = self.dispatch_ns
        return self.ratio(lambda row: row.ns if fastest[row.op] <= each else min(row.ns, row.count * each))


def build(steps: Steps) -> EagerLooks | None:
    """None if no look lies in the steady steps."""
    looks = [
        look
        for look in steps.worker.all(EagerOps)
        if look.thread == steps.thread and look.dur > look.own and _within(look, steps.windows)
    ]
    if not looks:
        return None
    most = max(look.ops for look in looks)
    long = [look for look in looks if look.ops >= LONG * most]
    late_ns = sum(look.late_ns for look in long)
    every = sum(look.late for look in looks)
    ns = sum(look.dur - look.own for look in looks)
    return EagerLooks(
        looks=len(looks),
        ns=ns,
        ops_ratio=min(1.0, sum(look.ns for look in looks) / ns),
        ops=sum(look.ops for look in looks),
        fresh_ratio=sum(look.fresh for look in looks) / every if every else 1.0,
        again_ratio=sum(look.late_again_ns for look in long) / late_ns if late_ns > 0 else 0.0,
        rows=_merged(row for look in looks for row in look.rows),
    )


def _within(look: EagerOps, windows: intervals.Intervals) -> bool:
    begin, end = int(windows[0][0]), int(windows[1][-1])
    return min(end, look.at + look.dur) - max(begin, look.at) >= MIN_WITHIN * look.dur


def _merged(rows: Iterable[EagerOp]) -> tuple[EagerOp, ...]:
    """Rows of the same op, line and layer as one."""
    found: dict[tuple[str, str, int, str], EagerOp] = {}
    for row in rows:
        key = row.op, row.file, row.line, row.scope
        had = found.get(key)
        found[key] = row if had is None else _sum(had, row)
    return tuple(found.values())


def _sum(one: EagerOp, other: EagerOp) -> EagerOp:
    return EagerOp(
        op=one.op,
        file=one.file,
        function=one.function,
        line=one.line,
        scope=one.scope,
        count=one.count + other.count,
        ns=one.ns + other.ns,
        again=one.again + other.again,
        again_ns=one.again_ns + other.again_ns,
        bytes=max(one.bytes, other.bytes),
        part=one.part + other.part,
        part_ns=one.part_ns + other.part_ns,
        part_bytes=max(one.part_bytes, other.part_bytes),
    )
