"""The ops of compiled programs (HLO) that a trace's events are, or work for: kernels of a GPU, XLA's ops on the CPU.

An event names its op and its program; the program, in the same file, says what the op computes.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepscope.readers.op_names import hlo_type
from stepscope.tables.optrace import LineKind, PlaneKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import NDArray

    from stepscope.tables.optrace import OpTrace, Program
    from stepscope.tables.program_ops import Frame, ProgramOp
    from stepscope.tables.records import I64

_NO_PLACE = re.compile(r"dummy_file_name|.*/tensorflow/python/.*")
"""Files that TensorFlow (2.21) gives for ops that XLA compiles: a placeholder, or where all its ops are made."""
_LIBRARIES = ("/site-packages/", "/dist-packages/")


class CompiledOp(Struct, frozen=True, kw_only=True):
    """An op of a program."""

    name: str
    """Its name with that of its program, on a device: ops of different programs have the same ones."""
    type: str
    op: ProgramOp
    place: Frame | None
    """The line that the fewest other ops of its program come through, the innermost of those; None: not known."""


class CompiledOps(Struct, frozen=True, kw_only=True):
    """All ops that events name. Shapes: ``row``, ``index`` int64[event], rows of events rising, and their op.

    A function that is compiled for several shapes is several programs: their ops of the same name, line and origin are
    one, with the shape and the work that they have in common.
    """

    ops: tuple[CompiledOp, ...]
    row: I64
    index: I64

    def of(self, rows: I64) -> I64:
        """The op of each of some events: int64[event], -1 for none."""
        if not len(self.row):
            return np.full(len(rows), -1, np.int64)
        at = np.searchsorted(self.row, rows).clip(max=len(self.row) - 1)
        return np.where(self.row[at] == rows, self.index[at], -1)


def build(trace: OpTrace) -> CompiledOps:
    """The ops that events of a trace name; none without the programs."""
    programs = _Programs(trace.programs)
    rows, index = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for line in trace.lines if programs.ops else ():
        kind = trace.planes[line.plane].kind
        if line.derived or not (line.kind is LineKind.STREAM or kind is PlaneKind.HOST):
            continue
        column = trace.stats.of_events(StatName.HLO_OP, line.first, line.last)
        if not len(column) or column.texts is None:
            continue
        ids = trace.ints_at(StatName.PROGRAM_ID, column.rows)
        modules = _modules(trace, column.rows) if not programs.has(ids) else np.full(len(ids), "")
        keys = list(zip(ids.tolist(), modules.tolist(), column.values.astype(np.int64).tolist(), strict=True))
        on_device = kind is not PlaneKind.HOST
        known = {key: programs.number(key[0], key[1], column.texts[key[2]], on_device=on_device) for key in set(keys)}
        found = np.array([known[key] for key in keys], np.int64)
        rows.append(column.rows[found >= 0])
        index.append(found[found >= 0])
    return CompiledOps(ops=tuple(programs.ops), row=np.concatenate(rows), index=np.concatenate(index))


class _Programs:
    """Ops of programs, on devices and on the host."""

    def __init__(self, programs: Iterable[Program]) -> None:
        self.ops: list[CompiledOp] = []
        self._ids = np.array([program.id for program in programs], np.int64)
        self._by_id: dict[tuple[int, str, bool], int] = {}
        self._by_name: dict[tuple[str, str, bool], int] = {}
        alike: dict[Hashable, int] = {}
        for program in programs:
            for on_device in (True, False):
                for one in _of(program, on_device=on_device):
                    key = (on_device, one.name, one.type, one.place, one.op.op_name, one.op.convolution)
                    number = alike.setdefault(key, len(self.ops))
                    if number == len(self.ops):
                        self.ops.append(one)
                    else:
                        self.ops[number] = _common(self.ops[number], one)
                    self._by_id[program.id, one.op.name, on_device] = number
                    named = self._by_name.setdefault((program.name, one.op.name, on_device), number)
                    if named != number:
                        self._by_name[program.name, one.op.name, on_device] = -1

    def has(self, ids: I64) -> bool:
        """Whether these are ids of programs."""
        return bool(np.isin(ids, self._ids).all())

    def number(self, program: int, module: str, op: str, *, on_device: bool) -> int:
        """Index of an op; -1 if it is not known. Without its program it is what all programs of that name have:
        programs of JAX's compilation cache (0.10) run under other ids than they are described with.
        """
        found = self._by_id.get((program, op, on_device))
        return found if found is not None else self._by_name.get((module, op, on_device), -1)


def _modules(trace: OpTrace, rows: I64) -> NDArray[np.str_]:
    """Names of the programs of events; "" where they are not said."""
    codes, texts = trace.texts(StatName.HLO_MODULE)
    return np.array([*texts, ""])[codes[rows]]


def _common(known: CompiledOp, other: CompiledOp) -> CompiledOp:
    """The same op of two programs, with what both say."""
    op = known.op
    shape = op.shape if op.shape == other.op.shape else ""
    flops = op.flops if op.flops == other.op.flops else 0.0
    return replace(known, op=replace(op, shape=shape, flops=flops))


def _of(program: Program, *, on_device: bool) -> Iterable[CompiledOp]:
    through = Counter(frame[::2] for one in program.ops for frame in set(one.frames))
    for one in program.ops:
        name = f"{program.name}/{one.name}" if on_device else one.name
        yield CompiledOp(name=name, type=hlo_type(one.name), op=one, place=_place(one, through))


def _place(op: ProgramOp, through: Counter[tuple[str, int]]) -> Frame | None:
    frames = [frame for frame in op.frames if not _NO_PLACE.fullmatch(frame.file)]
    own = [frame for frame in frames if not any(part in frame.file for part in _LIBRARIES)] or frames
    return min(own, key=lambda frame: through[frame[::2]], default=None)
