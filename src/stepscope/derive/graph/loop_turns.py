"""Number of iterations of a graph's loop, where its inputs or its condition show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from stepscope.derive.graph.independent_loops import ARGUMENT, IDLE, RESULT, WHILE
from stepscope.model.log.graph import UNKNOWN, attributes_of
from stepscope.wire.replayed_ops import CONSTANT, VALUE

if TYPE_CHECKING:
    from stepscope.derive.graph.index import GraphIndex

UNROLLED = "TensorListFromTensor"
"""The op that makes a list from a tensor; a loop takes one element of it in each iteration."""
_COUNTS = frozenset({"Less", "LogicalAnd", RESULT, *IDLE})
"""Types of a condition that only counts."""


@dataclass(frozen=True, slots=True)
class Turns:
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


def build(index: GraphIndex, row: int) -> Turns | None:
    """The most iterations that a loop makes; None if that does not follow."""
    by_lists = of_lists(index, row)
    if by_lists is not None:
        return Turns(by_lists, sure=True)
    forward = index.forward_of(row) if index.is_gradient(row) else row
    if forward not in {row, UNKNOWN} and index.table.type_of(forward) in WHILE:
        return build(index, forward)
    conditions = [graph for attribute, graph in index.called_by(row) if attribute == "cond"]
    return _by_condition(index, row, conditions[0]) if len(conditions) == 1 else None


def _by_condition(index: GraphIndex, row: int, condition: int) -> Turns | None:
    """The least number that a counter which starts at zero is compared with."""
    table = index.table
    rows = table.rows_of(condition)
    nodes = range(rows.start, rows.stop)
    arguments = {r: i for i, r in enumerate(r for r in nodes if table.type_of(r) == ARGUMENT)}
    outer = table.inputs_of(row).tolist()

    def number(node: int) -> int | None:
        place = arguments.get(node)
        if place is not None and len(arguments) == len(outer):
            node = outer[place]
        return _constant(index, node) if node >= 0 and table.type_of(node) == CONSTANT else None

    limits = []
    for node in nodes:
        if table.type_of(node) == "Less":
            counter, limit = table.inputs_of(node).tolist()
            limits.append(number(limit) if number(counter) == 0 else None)
    known = [limit for limit in limits if limit is not None and limit > 0]
    if not known:
        return None
    sure = len(known) == len(limits) and all(table.type_of(node) in _COUNTS for node in nodes)
    return Turns(min(known), sure=sure)


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
