"""Time per op: number of runs, total time, and time without the ops inside it.

An op is what has an op type: a framework op on a host thread (``name:Type``), a stage of a tf.data pipeline, an HLO op
of a TPU, and on a GPU the framework op named by a kernel or copy, else the op of its compiled program; a kernel without
either counts under its own name. Self
time is the duration minus that of the ops directly inside it on the same thread; events that are no ops (the executor
around them) subtract nothing.

Source: xprof counts the same way (``xplane_to_op_metrics_db.cc``), so the figures can be compared with its
``framework_op_stats``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.numeric import intervals
from stepscope.derive.optrace import compiled_ops
from stepscope.derive.optrace.host.event_nesting import parents, self_times
from stepscope.readers.op_names import WHOLE_PROGRAM, parse_op
from stepscope.tables.blocks import take
from stepscope.tables.optrace import DEVICE_KINDS, Category, LineKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.derive.numeric.intervals import Intervals
    from stepscope.derive.optrace.compiled_ops import CompiledOps
    from stepscope.tables.optrace import I8, I32, Line, OpTrace, Plane
    from stepscope.tables.records import F64, I64


class OpRow(Struct, frozen=True, kw_only=True):
    """One op on one plane."""

    plane: int
    """Index into ``OpTrace.planes``."""
    name: str
    """Name without its type; the kernel's name if it belongs to no op."""
    type: str
    """Op type; empty for a kernel that belongs to no op."""
    category: Category
    calls: int
    total_ps: int
    self_ps: int
    compiled: int
    """Index into ``CompiledOps.ops``; -1: of no compiled program."""


class OpStats(Struct, frozen=True, kw_only=True):
    """All ops of a trace, longest self time first. Shapes: [op]; times in picoseconds."""

    plane: I32
    name: tuple[str, ...]
    type: tuple[str, ...]
    category: I8
    calls: I64
    total_ps: I64
    self_ps: I64
    compiled: I64

    def __len__(self) -> int:
        """Number of ops."""
        return len(self.name)

    def rows(self) -> Iterator[OpRow]:
        """The ops one by one."""
        for i in range(len(self)):
            yield OpRow(
                plane=int(self.plane[i]),
                name=self.name[i],
                type=self.type[i],
                category=Category(int(self.category[i])),
                calls=int(self.calls[i]),
                total_ps=int(self.total_ps[i]),
                self_ps=int(self.self_ps[i]),
                compiled=int(self.compiled[i]),
            )


def build(trace: OpTrace, compiled: CompiledOps | None = None, pauses: Intervals | None = None) -> OpStats:
    """Time per op of a trace.

    Args:
        trace: the trace.
        compiled: its ops of compiled programs, if they are known already.
        pauses: times whose ops do not count.

    Raises:
        FormatError, SessionError: the trace's stats cannot be read.

    Cost: about 40 ns an event, and 0.5 us for one of an op.
    """
    gpus = [plane for plane in trace.planes if plane.kind in DEVICE_KINDS]
    programs = compiled or compiled_ops.build(trace)
    out = pauses or intervals.empty()
    tables = [_by_meta(trace, programs, out), *(_by_framework_op(trace, plane, programs, out) for plane in gpus)]
    plane = np.concatenate([t.plane for t in tables])
    self_ps = np.concatenate([t.self_ps for t in tables])
    order = np.lexsort((plane, -self_ps))
    names = [name for t in tables for name in t.name]
    types = [kind for t in tables for kind in t.type]
    return OpStats(
        plane=plane[order],
        name=tuple(names[i] for i in order),
        type=tuple(types[i] for i in order),
        category=np.concatenate([t.category for t in tables])[order],
        calls=np.concatenate([t.calls for t in tables])[order],
        total_ps=np.concatenate([t.total_ps for t in tables])[order],
        self_ps=self_ps[order],
        compiled=np.concatenate([t.compiled for t in tables])[order],
    )


def _counted(trace: OpTrace, rows: I64, pauses: Intervals) -> I64:
    """The rows that do not begin in a pause."""
    if not len(pauses[0]):
        return rows
    start = trace.events.start_ns[rows]
    return rows[~intervals.overlapping(pauses, start, start + 1)]


def _by_meta(trace: OpTrace, programs: CompiledOps, pauses: Intervals) -> OpStats:
    """Ops identified by their kind of event and their program: on host threads and TPU cores."""
    metas, events = trace.metas, trace.events
    is_op = metas.op_type != 0
    width = len(programs.ops) + 1
    parts = []
    for line in trace.lines:
        if line.derived or line.kind in {LineKind.STREAM, LineKind.ASYNC_OPS}:
            continue
        rows = _counted(trace, line.first + np.flatnonzero(take(is_op, events.meta[line.slice])), pauses)
        if not len(rows):
            continue
        rows, start_ns, dur = _spans(trace, line, rows)
        keys, at = np.unique(events.meta[rows].astype(np.int64) * width + programs.of(rows) + 1, return_inverse=True)
        own = self_times(dur, parents(start_ns, dur // 1000))
        parts.append(np.stack([keys, *(np.bincount(at, weights).astype(np.int64) for weights in (None, dur, own))]))
    keys, calls, total, own = np.concatenate(parts, axis=1) if parts else np.empty((4, 0), np.int64)
    meta, compiled = keys // width, keys % width - 1
    names = metas.op_name[meta].astype(np.int64) * len(trace.strings) + metas.op_type[meta]
    by_op = np.lexsort((compiled, names, metas.plane[meta]))
    meta, told = meta[by_op], np.stack([metas.plane[meta], names, compiled])[:, by_op]
    first = (np.diff(told, axis=1, prepend=-2) != 0).any(axis=0)
    group = np.cumsum(first) - 1
    ops = meta[first]
    category = np.zeros(len(ops), np.int8)
    category[group] = metas.category[meta]
    return _summed(
        group,
        calls[by_op],
        total[by_op],
        own[by_op],
        plane=metas.plane[ops],
        names=[trace.strings[i] for i in metas.op_name[ops].tolist()],
        types=[trace.strings[i] for i in metas.op_type[ops].tolist()],
        category=category,
        compiled=told[2][first],
    )


def _spans(trace: OpTrace, line: Line, rows: I64) -> tuple[I64, I64, I64]:
    """Rows by start, with starts in ns and exact durations in ps: on the device's own clock if the trace has it."""
    events = trace.events
    if line.kind is LineKind.XLA_OPS:
        offset = trace.stats.of_events(StatName.DEVICE_OFFSET_PS, line.first, line.last)
        own = trace.stats.of_events(StatName.DEVICE_DURATION_PS, line.first, line.last)
        if len(own) == line.last - line.first and np.array_equal(own.rows, offset.rows):
            at = rows - line.first
            start, dur = offset.values[at].astype(np.int64), own.values[at].astype(np.int64)
            order = np.lexsort((-dur, start))
            return rows[order], start[order] // 1000, dur[order]
    return rows, events.start_ns[rows], _exact(trace, rows)


def _exact(trace: OpTrace, rows: I64) -> I64:
    """Durations in picoseconds."""
    dur: I64 = trace.events.dur_ns[rows] * 1000
    if trace.events.dur_rem_ps is not None:
        dur += trace.events.dur_rem_ps[rows]
    return dur


def _by_framework_op(trace: OpTrace, plane: Plane, programs: CompiledOps, pauses: Intervals) -> OpStats:
    """Ops whose kernels ran in the streams of a device. Streams do not nest: self time is total time."""
    events, metas = trace.events, trace.metas
    lines = [line for line in trace.lines_of(LineKind.STREAM) if line.plane == plane.index]
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(line.first, line.last) for line in lines)])
    rows = _counted(trace, rows, pauses)
    op, ops = _ops_of(trace, plane, rows, programs)
    plain = np.flatnonzero(op < 0)
    op[plain] = len(ops) + metas.name[events.meta[rows[plain]]]
    used = np.flatnonzero(np.bincount(op)) if len(op) else rows
    group_of = np.zeros(len(ops) + len(trace.strings), np.int64)
    group_of[used] = np.arange(len(used))
    group = group_of[op]
    names, types = [], []
    said = len(ops) - len(programs.ops)
    for code in used.tolist():
        name, kind = ops[code] if code < len(ops) else (trace.strings[code - len(ops)], "")
        names.append(name)
        types.append(kind)
    category = np.zeros(len(used), np.int8)
    category[group] = metas.category[events.meta[rows]]
    dur = _exact(trace, rows)
    where = np.full(len(used), plane.index, np.int32)
    compiled = np.where((used >= said) & (used < len(ops)), used - said, -1)
    return _summed(
        group,
        np.ones(len(rows)),
        dur,
        dur,
        plane=where,
        names=names,
        types=types,
        category=category,
        compiled=compiled,
    )


def _ops_of(trace: OpTrace, plane: Plane, rows: I64, programs: CompiledOps) -> tuple[I64, list[tuple[str, str]]]:
    """(name, type) of ops, and which of them each event names: the framework's, else that of its program, else -1."""
    first, last = trace.rows_of(plane)
    column = trace.stats.of_rows(StatName.TF_OP, rows)
    said = np.full(last - first, -1, np.int64)
    if column.texts is not None:
        said[column.rows - first] = column.values.astype(np.int64)
        said[np.isin(said, [i for i, text in enumerate(column.texts) if text in {"", WHOLE_PROGRAM}])] = -1
    ops = [parse_op(text) or (text, "") for text in column.texts or ()]
    mine = (programs.row >= first) & (programs.row < last)
    at = programs.row[mine] - first
    said[at] = np.where(said[at] < 0, len(ops) + programs.index[mine], said[at])
    return said[rows - first], ops + [(one.name, one.type) for one in programs.ops]


def _summed(
    group: I64,
    calls: I64 | F64,
    total: I64 | F64,
    own: I64 | F64,
    *,
    plane: I32,
    names: list[str],
    types: list[str],
    category: I8,
    compiled: I64,
) -> OpStats:
    """Sums by group; exact below 2**53 ps, two and a half hours of one op."""
    sums = [np.rint(np.bincount(group, v, len(names))).astype(np.int64) for v in (calls, total, own)]
    return OpStats(
        plane=plane,
        name=tuple(names),
        type=tuple(types),
        category=category,
        calls=sums[0],
        total_ps=sums[1],
        self_ps=sums[2],
        compiled=compiled,
    )
