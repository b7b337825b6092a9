"""The ops of compiled programs (HLO) that a trace's events are, or work for: kernels of a GPU, XLA's ops on the CPU.

An event names its op and its program; the program, in the same file, says what the op computes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stepscope.formats.op_names import hlo_type
from stepscope.model.session.optrace import LineKind, PlaneKind
from stepscope.model.session.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepscope.model.records import I64
    from stepscope.model.session.optrace import OpTrace, Program
    from stepscope.model.session.program_ops import Frame, ProgramOp

_NO_PLACE = re.compile(r"dummy_file_name|.*/tensorflow/python/.*")
"""Files that TensorFlow (2.21) gives for ops that XLA compiles: a placeholder, or where all its ops are made."""
_LIBRARIES = ("/site-packages/", "/dist-packages/")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledOp:
    """An op of a program."""

    name: str
    """Its name with that of its program, on a device: ops of different programs have the same ones."""
    type: str
    op: ProgramOp
    place: Frame | None
    """The line that the fewest other ops of its program come through, the innermost of those; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledOps:
    """All ops that events name. Shapes: ``row``, ``index`` int64[event], rows of events rising, and their op."""

    ops: tuple[CompiledOp, ...]
    row: I64
    index: I64

    def by_name(self) -> Mapping[tuple[str, str], CompiledOp]:
        """Ops by name and type; those that share both are left out."""
        many = Counter((one.name, one.type) for one in self.ops)
        return {(one.name, one.type): one for one in self.ops if many[one.name, one.type] == 1}


def build(trace: OpTrace) -> CompiledOps:
    """The ops that events of a trace name; none without the programs."""
    ops: list[CompiledOp] = []
    numbers: dict[tuple[bool, int, str], int] = {}
    for program in trace.programs:
        for on_device in (True, False):
            for one in _of(program, on_device=on_device):
                numbers[on_device, program.id, one.op.name] = len(ops)
                ops.append(one)
    rows, index = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for line in trace.lines if ops else ():
        kind = trace.planes[line.plane].kind
        if line.derived or not (line.kind is LineKind.STREAM or kind is PlaneKind.HOST):
            continue
        column = trace.stats.of_events(StatName.HLO_OP, line.first, line.last)
        if not len(column) or column.texts is None:
            continue
        program_ids = trace.ints_at(StatName.PROGRAM_ID, column.rows)
        keys = list(zip(program_ids.tolist(), column.values.astype(np.int64).tolist(), strict=True))
        known = {key: numbers.get((kind is not PlaneKind.HOST, key[0], column.texts[key[1]]), -1) for key in set(keys)}
        found = np.array([known[key] for key in keys], np.int64)
        rows.append(column.rows[found >= 0])
        index.append(found[found >= 0])
    return CompiledOps(ops=tuple(ops), row=np.concatenate(rows), index=np.concatenate(index))


def _of(program: Program, *, on_device: bool) -> Iterable[CompiledOp]:
    through = Counter(frame[::2] for one in program.ops for frame in set(one.frames))
    for one in program.ops:
        name = f"{program.name}/{one.name}" if on_device else one.name
        yield CompiledOp(name=name, type=hlo_type(one.name), op=one, place=_place(one, through))


def _place(op: ProgramOp, through: Counter[tuple[str, int]]) -> Frame | None:
    frames = [frame for frame in op.frames if not _NO_PLACE.fullmatch(frame.file)]
    own = [frame for frame in frames if not any(part in frame.file for part in _LIBRARIES)] or frames
    return min(own, key=lambda frame: through[frame[::2]], default=None)
