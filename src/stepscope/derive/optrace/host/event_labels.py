"""The op that each event of a trace is, or works for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace import compiled_ops
from stepscope.readers.op_names import WHOLE_PROGRAM, parse_op
from stepscope.tables.optrace import DEVICE_KINDS, Category, LineKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from stepscope.tables.optrace import OpTrace
    from stepscope.tables.records import I64

Op = tuple[str, str]
"""Name and type; a kernel that names no op has its own name, and no type."""
_OPS = (Category.OP, Category.KERNEL, Category.COPY, Category.COLLECTIVE, Category.INPUT, Category.PYTHON)


class Labels(Struct, frozen=True, kw_only=True):
    """The op of each event. Shapes: ``index`` int64[event], into ``ops``; -1 if an event belongs to no op."""

    ops: tuple[Op, ...]
    index: I64

    def of(self, event: int) -> Op | None:
        """The op of one event."""
        i = int(self.index[event])
        return self.ops[i] if i >= 0 else None


def build(trace: OpTrace) -> Labels:
    """The op of every event."""
    metas = trace.metas
    numbers: dict[Op, int] = {}
    per_meta = np.full(len(metas), -1, np.int64)
    for meta in np.flatnonzero(np.isin(metas.category, _OPS)).tolist():
        name = trace.strings[metas.op_name[meta]] or trace.strings[metas.name[meta]]
        per_meta[meta] = numbers.setdefault((name, trace.strings[metas.op_type[meta]]), len(numbers))
    index = per_meta[trace.events.meta]
    on_device = [
        np.arange(line.first, line.last)
        for line in trace.lines_of(LineKind.STREAM)
        if trace.planes[line.plane].kind in DEVICE_KINDS
    ]
    if on_device:
        rows = np.concatenate(on_device)
        codes, texts = trace.texts(StatName.TF_OP)
        ops = [numbers.setdefault(parse_op(text) or (text, ""), len(numbers)) for text in texts]
        said = codes[rows] >= 0
        said &= ~np.array([*(text == WHOLE_PROGRAM for text in texts), False], np.bool_)[codes[rows]]
        index[rows[said]] = np.array(ops, np.int64)[codes[rows[said]]]
        programs = compiled_ops.build(trace)
        named = [numbers.setdefault((one.name, one.type), len(numbers)) for one in programs.ops]
        left = np.isin(programs.row, rows[~said])
        index[programs.row[left]] = np.array([*named, -1], np.int64)[programs.index[left]]
    return Labels(ops=tuple(numbers), index=index)
