"""Loops of a graph whose iterations are independent, as made by ``tf.map_fn`` or by AutoGraph from a loop over rows.

An iteration of such a loop reads its own element, and it passes on only the counter, its result in a list, or a sum
that nothing else reads. A recurrence passes on a state that the next iteration reads; a loop around training steps
changes variables. Source: tensorflow/python/ops/while_v2.py for the form of a body.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.derive.graph.index import CALLING, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.graph.index import GraphIndex

WHILE = ("While", "StatelessWhile")
ARGUMENT, RESULT = "Placeholder", "Identity"
TAKES = frozenset({"TensorListGetItem", "GatherV2", "StridedSlice", "ResourceGather"})
"""Ops by which an iteration reads its element: from a list, or by its index."""
PUTS = frozenset({"TensorListSetItem", "TensorListPushBack", "TensorListSetItemWithResize"})
ADDS = frozenset({"AddV2", "Add"})
IDLE = frozenset({"Const", "Placeholder", "NoOp"})
"""Ops that take no time."""
CHANGES = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "IteratorGetNext", "MutableHashTable")
"""Prefixes of types that change something outside the loop, which the next iteration may read."""


class LoopPart(Struct, frozen=True, kw_only=True):
    """A loop, or the loop of its gradient, by rows. A call stands for itself and for what it calls."""

    body: frozenset[int]
    """Rows of its body and condition, and of what these call."""
    before: frozenset[int]
    """Rows that run before it ends, because it needs them."""
    after: frozenset[int]
    """Rows that cannot run before it ends, because they need it."""
    beside: int
    """Number of nodes of its graph that are neither, so that they may run at the same time."""


class IndependentLoop(Struct, frozen=True, kw_only=True):
    """A loop whose iterations could be done at once."""

    row: int
    """Row of the loop's node."""
    parts: tuple[LoopPart, ...]
    """The loop, then the loops of its gradient."""


def build(index: GraphIndex) -> tuple[IndependentLoop, ...]:
    """The independent loops of the graphs of steps; those in functions of tf.data are left out."""
    table = index.table
    loops = [row for row in table.of_types(*WHILE).tolist() if not index.of_data(int(table.graph[row]))]
    gradients: dict[int, list[int]] = defaultdict(list)
    for row in loops:
        forward = index.forward_of(row) if index.is_gradient(row) else NOT_FOUND
        if forward != NOT_FOUND:
            gradients[forward].append(row)
    return tuple(
        IndependentLoop(row=row, parts=tuple(_part(index, part) for part in (row, *gradients[row])))
        for row in loops
        if not index.is_gradient(row) and _independent(index, row)
    )


def _part(index: GraphIndex, row: int) -> LoopPart:
    table = index.table
    rows = table.rows_of(int(table.graph[row]))
    needs = {r: {i for i in table.inputs_of(r).tolist() if i >= 0} for r in range(rows.start, rows.stop)}
    needed: dict[int, set[int]] = defaultdict(set)
    for user, inputs in needs.items():
        for producer in inputs:
            needed[producer].add(user)
    before, after = _reached(row, needs), _reached(row, needed)
    others = [r for r in needs if table.type_of(r) not in IDLE and r not in before and r not in after and r != row]
    return LoopPart(
        body=frozenset(_called(index, row)),
        before=_with_calls(index, before),
        after=_with_calls(index, after),
        beside=len(others),
    )


def _reached(row: int, edges: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    todo = [row]
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found - {row}


def _with_calls(index: GraphIndex, rows: set[int]) -> frozenset[int]:
    callers = [row for row in rows if index.table.type_of(row) in CALLING]
    return frozenset(rows.union(*(_called(index, row) for row in callers)))


def _called(index: GraphIndex, row: int) -> set[int]:
    return {inner for _, graph in index.called_by(row) for inner in index.inside(graph)}


def _independent(index: GraphIndex, row: int) -> bool:
    bodies = [graph for attribute, graph in index.called_by(row) if attribute == "body"]
    if len(bodies) != 1:
        return False
    body = _Body(index, bodies[0])
    if any(index.table.type_of(inner).startswith(CHANGES) for inner in index.inside(bodies[0])):
        return False
    return body.takes_elements() and all(body.hands_on_no_state(result) for result in body.results)


class _Body:
    """The graph of a loop's body."""

    def __init__(self, index: GraphIndex, graph: int) -> None:
        self.table = index.table
        rows = self.table.rows_of(graph)
        self.rows = range(rows.start, rows.stop)
        self.users: dict[int, list[int]] = defaultdict(list)
        """Rows that read each row."""
        for row in self.rows:
            for producer in self.table.inputs_of(row).tolist():
                self.users[producer].append(row)
        self.results = [row for row in self.rows if self.table.type_of(row) == RESULT and row not in self.users]

    def takes_elements(self) -> bool:
        """Whether an iteration reads an element of its own."""
        return any(self.table.type_of(row) in TAKES for row in self.rows)

    def hands_on_no_state(self, result: int) -> bool:
        """Whether the next iteration reads nothing that this result brings it."""
        source = self._source(result)
        kind = self.table.type_of(source)
        if kind == ARGUMENT:
            return True
        inputs = [self._source(i) for i in self.table.inputs_of(source).tolist() if i >= 0]
        arguments = [i for i in inputs if self.table.type_of(i) == ARGUMENT]
        if kind in PUTS:
            return all(self._only_put(i) for i in arguments if self._is_list(i))
        return kind in ADDS and (self._counts(source, inputs) or self._sums(source, arguments))

    def _source(self, row: int) -> int:
        while self.table.type_of(row) == RESULT and len(inputs := self.table.inputs_of(row)) and inputs[0] >= 0:
            row = int(inputs[0])
        return row

    def _is_list(self, row: int) -> bool:
        return any(spec.dtype == "variant" for spec in self.table.specs_of(row))

    def _only_put(self, argument: int) -> bool:
        """Whether the argument is a list that iterations write and do not read."""
        return all(self.table.type_of(user) in {*PUTS, RESULT} for user in self.users[argument])

    def _counts(self, source: int, inputs: list[int]) -> bool:
        whole = all(spec.dtype in {"int32", "int64"} and spec.shape == () for spec in self.table.specs_of(source))
        kinds = sorted(self.table.type_of(i) for i in inputs)
        return whole and kinds == ["Const", ARGUMENT]

    def _sums(self, source: int, arguments: list[int]) -> bool:
        """Whether it is a sum over iterations: the argument is added to, and nothing else reads it."""
        return any(self.users[argument] == [source] for argument in arguments)
