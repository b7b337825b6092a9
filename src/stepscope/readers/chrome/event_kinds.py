"""The kinds of trace events: what name, category and some arguments say of each, worked out once per kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.readers.chrome import arg_columns
from stepscope.readers.chrome.kineto_names import kineto_meaning
from stepscope.readers.op_names import Meaning, op_category
from stepscope.tables.optrace import Category
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stepscope.readers.chrome.arg_columns import Part
    from stepscope.readers.optrace_builder import OpTraceBuilder
    from stepscope.tables.optrace import I32
    from stepscope.tables.optrace_stats import PlainStat
    from stepscope.tables.records import I64

_RECEIVED, _UNKNOWN = "RecvTensor", "unknown"
"""Pseudo ops in TF1 timelines for a transfer between tasks and for an unknown op: not op types."""
_ORT_KERNEL = "_kernel_time"
"""Suffix that ONNX Runtime adds to the names of its nodes' events."""
_NODE, _OP, _ORT_OP = "name", "op", "op_name"
_TABLE = 1 << 24
"""Number of combinations up to which a table of them costs less than sorting."""


class Named(Struct, frozen=True, kw_only=True):
    """Events in the order of adding. Shapes: [event]."""

    name: I32
    """Index into ``texts``, as ``category``."""
    category: I32
    texts: Sequence[str]
    rows: I64
    """Their rows in the file."""


def metas(
    builder: OpTraceBuilder,
    line: I64,
    events: Named,
    stats: Mapping[str, Sequence[Part]],
    named: Callable[[str], Meaning | None] | None,
) -> I64:
    """The number of each event's kind.

    Args:
        builder: has the lines, and gets the kinds.
        line: each event's line.
        events: the events.
        stats: parts of their arguments by name.
        named: says what else names of this file mean; None: nothing.
    """
    if not len(line):
        return np.empty(0, np.int64)
    rows = int(events.rows.max()) + 1
    said = {name: arg_columns.dense(stats[name], rows, how) for name, how in _SAID.items() if name in stats}
    places, place = builder.kinds_of_lines()
    codes, size = place[line], places
    texts = len(events.texts)
    columns = [(events.name, texts), (events.category, texts)]
    columns += [(column[events.rows], len(known)) for column, known in said.values()]
    for column, count in columns:
        codes, size = _compact(codes * count + column, size * count)
    first = np.empty(size, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    meta = np.empty(size, np.int64)
    for code in np.argsort(first).tolist():
        event = int(first[code])
        name, category = events.texts[events.name[event]], events.texts[events.category[event]]
        args = {key: words[column[events.rows[event]]] for key, (column, words) in said.items()}
        known = _meaning(name, category, args) or (named(name) if named else None)
        meta[code] = builder.meta(
            int(line[event]),
            name,
            known=known,
            step=known is None and args.get(StatName.STEP_NUM) is not None,
            hlo_category=args.get(StatName.HLO_CATEGORY) or "",
            hlo_op=args.get(StatName.HLO_OP) is not None,
        )
    return meta[codes]


def _compact(codes: I64, size: int) -> tuple[I64, int]:
    """The codes that occur, numbered from 0, and how many there are. ``codes``: below ``size``."""
    if size > _TABLE:
        found, at = np.unique(codes, return_inverse=True)
        return at, len(found)
    there = np.zeros(size, np.bool_)
    there[codes] = True
    return (np.cumsum(there) - 1)[codes], int(there.sum())


def _text(value: PlainStat) -> str | None:
    return value if isinstance(value, str) else None


def _there(_value: PlainStat) -> str:
    return ""


_SAID: Mapping[str, Callable[[PlainStat], str | None]] = {
    _NODE: _text,
    _OP: _text,
    _ORT_OP: _text,
    StatName.HLO_CATEGORY: str,
    StatName.HLO_OP: _there,
    StatName.STEP_NUM: _there,
}
"""What arguments say of an event's kind."""


def _meaning(name: str, category: str, args: Mapping[str, str | None]) -> Meaning | None:
    """The meaning of an event whose category or arguments say more than its name."""
    node, kind = args.get(_NODE), args.get(_OP)
    if node is not None and kind is not None:
        if node == kind == _RECEIVED:
            return Meaning(category=Category.COLLECTIVE)
        return Meaning(category=op_category(kind), op_name=node, op_type="" if kind == _UNKNOWN else kind)
    kind = args.get(_ORT_OP)
    if kind is not None and name.endswith(_ORT_KERNEL):
        return Meaning(category=Category.OP, op_name=name.removesuffix(_ORT_KERNEL), op_type=kind)
    return kineto_meaning(name, category) if category else None
