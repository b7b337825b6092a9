"""Arguments of functions that hold more bytes than the step computes with: it casts them down first of all.

Such an array is made, copied and read at twice the size, or more: NumPy makes float64 of `x / 255.0`.

Serves arrays_copied_each_call.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.causes.graph.operands import step_inputs
from stepscope.derive.graph.index import NOT_FOUND
from stepscope.model.log.graph import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.derive.graph.index import GraphIndex
    from stepscope.model.log.graph import TensorSpec
    from stepscope.model.log.program import InputSeen


class WideInputs(Struct, frozen=True, kw_only=True):
    """Arguments of one function."""

    seen: InputSeen
    """The largest that is cast down."""
    used: str
    """Type that it is cast to."""
    needless_ratio: float
    """Share of the bytes of all arrays that the function is given which the casts leave out."""


def build(index: GraphIndex, batches: Sequence[InputSeen]) -> WideInputs | None:
    """Of the function whose arguments hold the most needless bytes; None if none is cast down."""
    largest, best = 0.0, None
    for of in dict.fromkeys(one.of for one in batches):
        given = {one.position: one for one in batches if one.of == of and of}
        cast = {at: used for at, used in _cast_down(index, of).items() if at in given}
        lost = {
            at: _size(given[at]) * (1 - ITEM_BYTES[used] / ITEM_BYTES[given[at].dtype]) for at, used in cast.items()
        }
        if sum(lost.values()) > largest:
            largest, most = sum(lost.values()), max(lost, key=lambda at: lost[at])
            whole = sum(_size(one) for one in given.values())
            best = WideInputs(seen=given[most], used=cast[most], needless_ratio=largest / whole)
    return best


def _size(one: InputSeen) -> int:
    return prod(one.shape) * ITEM_BYTES.get(one.dtype, 0)


def _cast_down(index: GraphIndex, of: str) -> dict[int, str]:
    """Position of an argument -> type that all of its users cast it to."""
    found = {}
    for (row, slot), position, _, spec in step_inputs.entering(index):
        graph = int(index.table.graph[row])
        if of and index.definition_of(graph) == of and (used := _used(index, row, slot, spec)):
            found[position] = used
    return found


def _used(index: GraphIndex, row: int, slot: int, spec: TensorSpec) -> str:
    table = index.table
    rows = table.rows_of(int(table.graph[row]))
    users = [user for user in range(rows.start, rows.stop) if (row, slot) in _inputs(index, user)]
    kinds: Sequence[str] = [table.specs_of(user)[0].dtype if table.type_of(user) == "Cast" else "" for user in users]
    widest = max(kinds, key=lambda kind: ITEM_BYTES.get(kind, NOT_FOUND), default="")
    down = all(0 < ITEM_BYTES.get(kind, 0) < ITEM_BYTES.get(spec.dtype, 0) for kind in kinds)
    return widest if kinds and down else ""


def _inputs(index: GraphIndex, row: int) -> list[tuple[int, int]]:
    return list(zip(index.table.inputs_of(row).tolist(), index.table.slots_of(row).tolist(), strict=True))
