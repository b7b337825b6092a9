"""Number of iterations of a graph's loop, where its inputs or its condition show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stepscope.derive.graph.independent_loops import ADDS, ARGUMENT, IDLE, RESULT, WHILE
from stepscope.model.log.graph import UNKNOWN, attributes_of
from stepscope.wire.replayed_ops import CONSTANT, VALUE

if TYPE_CHECKING:
    from stepscope.derive.graph.index import GraphIndex

UNROLLED = "TensorListFromTensor"
"""The op that makes a list from a tensor; a loop takes one element of it in each iteration."""
_COUNTS = frozenset({"Less", "LogicalAnd", RESULT, *IDLE})
"""Types of a condition that only counts."""


class LoopTurns(Struct, frozen=True):
    """Iterations of a loop."""

    most: int
    sure: bool
    """Whether the loop makes them all: nothing else ends it."""


def of_lists(index: GraphIndex, row: int) -> int | None:
    """Iterations of a loop through tensors of known length, as a recurrent layer does; its gradient takes as many."""
    table = index.table
    lengths = []
    for made in (i for i in table.inputs_of(row).tolist() if i >= 0):
        if table.type_of(made) in WHILE and made != row:
            lengths.append(of_lists(index, made))
        elif table.type_of(made) == UNROLLED:
            lengths += [_length(index, i) for i in table.inputs_of(made).tolist()[:1] if i >= 0]
    return max((length for length in lengths if length is not None), default=None)


def build(index: GraphIndex, row: int) -> LoopTurns | None:
    """The most iterations that a loop makes; None if that does not follow."""
    by_lists = of_lists(index, row)
    if by_lists is not None:
        return LoopTurns(by_lists, sure=True)
    forward = index.forward_of(row) if index.is_gradient(row) else row
    if forward not in {row, UNKNOWN} and index.table.type_of(forward) in WHILE:
        return build(index, forward)
    called = dict(index.called_by(row))
    return _by_condition(_Inner(index, row, called["cond"]), called.get("body")) if "cond" in called else None


class _Inner:
    """A graph that a loop calls, with what the loop is given from outside."""

    def __init__(self, index: GraphIndex, row: int, graph: int) -> None:
        self.index, self.row = index, row
        rows = index.table.rows_of(graph)
        self.nodes = range(rows.start, rows.stop)
        arguments = [r for r in self.nodes if index.table.type_of(r) == ARGUMENT]
        self._outer = index.table.inputs_of(row).tolist()
        known = len(arguments) == len(self._outer)
        self.arguments = {r: i for i, r in enumerate(arguments)} if known else {}

    def number(self, node: int) -> int | None:
        """The value of a node before the first iteration; None if the graph does not show it."""
        place = self.arguments.get(node)
        if place is not None:
            node = self._outer[place]
        return _constant(self.index, node) if node >= 0 and self.index.table.type_of(node) == CONSTANT else None


def _by_condition(cond: _Inner, body: int | None) -> LoopTurns | None:
    """The least number of additions after which a counter reaches what it is compared with."""
    table = cond.index.table
    counts: list[int | None] = []
    for node in cond.nodes:
        if table.type_of(node) == "Less":
            counter, limit = table.inputs_of(node).tolist()
            start, end = cond.number(counter), cond.number(limit)
            step = _step(_Inner(cond.index, cond.row, body), cond.arguments.get(counter)) if body is not None else None
            if step is None and start == 0:
                step = 1
            if start is None or end is None or step is None or step <= 0:
                counts.append(None)
            else:
                counts.append(-((start - end) // step))
    found = [count for count in counts if count is not None and count > 0]
    if not found:
        return None
    sure = len(found) == len(counts) and all(table.type_of(node) in _COUNTS for node in cond.nodes)
    return LoopTurns(min(found), sure=sure)


def _step(body: _Inner, place: int | None) -> int | None:
    """What an iteration adds to an argument; None if that is no constant, or several are added."""
    table = body.index.table
    added = []
    for node in body.nodes:
        if table.type_of(node) in ADDS:
            inputs = table.inputs_of(node).tolist()
            mine = [i for i in inputs if body.arguments.get(i, -1) == place]
            added += [body.number(i) for i in inputs if mine and i not in mine]
    return added[0] if len(added) == 1 else None


def _constant(index: GraphIndex, row: int) -> int | None:
    try:
        found = msgspec.json.decode(attributes_of(index.table, row) or "{}")
    except msgspec.DecodeError:
        return None
    value = found.get(VALUE) if isinstance(found, dict) else None
    return int(value[0]) if isinstance(value, list) and len(value) == 1 else None


def _length(index: GraphIndex, row: int) -> int | None:
    spec = next(iter(index.table.specs_of(row)), None)
    shape = spec.shape if spec is not None else None
    return shape[0] if shape and shape[0] != UNKNOWN else None
