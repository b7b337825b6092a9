"""XSpace files (``*.xplane.pb``) as an op trace: TensorFlow 2.4 and later, JAX, Keras callbacks, GPUs, TPUs.

Needs neither TensorFlow nor xprof. ``messages`` reads the data around the events, ``line_events`` the events in
columns, ``event_stats`` their stats on request, ``plane_names`` classifies planes and lines; this module turns them
into the model.

Deliberately omitted: events named ``ThreadpoolListener::*``, the bookkeeping of thread pools, two thirds of a
TensorFlow capture. They are counted (``OpTrace.dropped``, ``Line.dropped``), and ``keep_noise`` keeps them. Nothing
else is dropped: neither the first and last step, nor lines or planes without events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.readers import damage_hint
from stepscope.readers.byte_source import ByteSource
from stepscope.readers.op_names import THREADPOOL_PREFIX, hlo_type, is_derived, meanings
from stepscope.readers.stat_columns import Strings
from stepscope.readers.xplane import hlo_signature
from stepscope.readers.xplane.event_columns import EventTable
from stepscope.readers.xplane.event_stats import MetaStats, StatPlace, XplaneStats
from stepscope.readers.xplane.line_events import Kinds, LineReader, WireLine
from stepscope.readers.xplane.messages import plain_stats, read_space
from stepscope.readers.xplane.plane_names import line_kind, ordinal, plane_kind
from stepscope.readers.xplane.stat_ids import stat_ids
from stepscope.tables.blocks import blocks, take
from stepscope.tables.errors import FormatError
from stepscope.tables.findings import Diagnostic
from stepscope.tables.optrace import (
    Category,
    Dropped,
    Events,
    Line,
    LineKind,
    Metas,
    OpTrace,
    Plane,
    PlaneKind,
    Program,
    TraceSource,
)
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stepscope.readers.xplane.messages import WirePlane, WireSpace
    from stepscope.tables.optrace import I8, I32
    from stepscope.tables.records import Bool

_EPOCH_NS = 10**17
"""Line clock value from which it counts from 1970, not from the start of the capture."""
_UNKNOWN = "(event without metadata)"
_SOUGHT = {StatName.STEP_NUM: True, StatName.STEP_ROOT: True, StatName.HLO_OP: False, StatName.CORRELATION_ID: True}
"""Stats that classify an event or link it to its launch, searched for while the events are read; with whether they are
numbers."""
_KEPT_BYTES = 8 << 20
"""Size of a block that, freed at once, makes glibc keep as much memory available (mallopt(3), M_TRIM_THRESHOLD) instead
of returning that of every window's columns to the system, which would hand it out again page by page."""
_WHOLE = "a whole xplane.pb as a profiler wrote it"


def read_file(path: Path, *, keep_noise: bool = False) -> OpTrace:
    """The op trace of an ``xplane.pb`` file; the file stays open for its stats.

    Args:
        path: the file.
        keep_noise: keep the bookkeeping of thread pools too.

    Raises:
        FormatError: the file cannot be read, is not an XSpace, or is damaged.

    Cost: about 0.2 us per event, and 50 bytes of memory for each kept event.
    """
    return _read(ByteSource.open(path), keep_noise=keep_noise)


def read_bytes(content: bytes, name: str = "", *, keep_noise: bool = False) -> OpTrace:
    """The op trace of bytes in memory; otherwise like ``read_file``."""
    return _read(ByteSource(content, name), keep_noise=keep_noise)


def _read(source: ByteSource, *, keep_noise: bool) -> OpTrace:
    np.empty(_KEPT_BYTES, np.uint8)
    if not source.size:
        raise FormatError(
            f"{source.name}: empty; expected an XSpace (a profiler with more than 2 GB to write leaves an empty "
            "file: capture fewer steps)"
        )
    try:
        return _Assembly(source, read_space(source), keep_noise=keep_noise).trace()
    except FormatError as error:
        head = source.view[: min(source.size, damage_hint.PROBE_BYTES)].tobytes()
        raise FormatError(
            f"{source.name}: not an XSpace, or damaged: {error}{damage_hint.hint(head, _WHOLE)}"
        ) from error


class _ReadLine(Struct):
    """A line; its events are rows ``first`` to ``last`` (exclusive) of the table."""

    wire: WireLine
    kind: LineKind
    first: int
    last: int
    dropped: int


class _PlaneMetas(Struct):
    """The metadata of a plane used on lines of one kind, with their numbers in the trace."""

    used: Bool
    numbers: I32 = field(default_factory=lambda: np.empty(0, np.int32))


class _MetaRows(Struct):
    """The columns of ``Metas`` while they grow."""

    name: list[int] = field(default_factory=list)
    op_name: list[int] = field(default_factory=list)
    op_type: list[int] = field(default_factory=list)
    category: list[int] = field(default_factory=list)
    plane: list[int] = field(default_factory=list)


class _Assembly:
    """Assembles the planes of a space. One use only."""

    def __init__(self, source: ByteSource, space: WireSpace, *, keep_noise: bool) -> None:
        self.source = source
        self.reader = LineReader(source)
        self.space = space
        self.keep_noise = keep_noise
        self.strings = Strings()
        self.table = EventTable(source.size)
        self.read: list[_ReadLine] = []
        self.planes: list[Plane] = []
        self.lines: list[Line] = []
        self.places: list[StatPlace] = []
        self.meta_rows = _MetaRows()
        self.meta_stats: list[MetaStats] = []

    def trace(self) -> OpTrace:
        for index, plane in enumerate(self.space.planes):
            self._plane(index, plane)
        zero, started = self._clock()
        columns = self.table
        columns.close()
        if zero:
            columns.start_ns -= zero
        events = Events(
            start_ns=columns.start_ns,
            dur_ns=columns.dur_ns,
            line=np.repeat(np.arange(len(self.lines), dtype=np.int32), [line.last - line.first for line in self.lines]),
            meta=columns.meta,
            dur_rem_ps=columns.rem_ps,
        )
        rows = self.meta_rows
        metas = Metas(
            name=np.array(rows.name, np.int32),
            op_name=np.array(rows.op_name, np.int32),
            op_type=np.array(rows.op_type, np.int32),
            category=np.array(rows.category, np.int8),
            plane=np.array(rows.plane, np.int32),
        )
        dropped = sum(line.dropped for line in self.lines)
        reason = f"bookkeeping of thread pools ({THREADPOOL_PREFIX}*)"
        trace = OpTrace(
            source=TraceSource(
                format="xplane",
                name=self.source.name,
                size_bytes=self.source.size,
                hostnames=tuple(self.space.hostnames),
                started_unix_ns=started,
                dur_ns=self._duration(events, started),
            ),
            planes=tuple(self.planes),
            lines=tuple(self.lines),
            events=events,
            metas=metas,
            strings=self.strings.all(),
            stats=self._stats(),
            dropped=(Dropped(reason=reason, events=dropped),) if dropped else (),
            diagnostics=self._diagnostics(),
        )
        trace = _with_kinds_by_stats(trace)
        return replace(trace, programs=self._programs(trace))

    def _plane(self, index: int, plane: WirePlane) -> None:
        kind = plane_kind(plane.name)
        noise = [not self.keep_noise and name.startswith(THREADPOOL_PREFIX) for name in plane.metas.names]
        kinds = Kinds(plane.metas.ids, noise)
        ids = stat_ids(plane)
        sought = {key: is_number for name, is_number in _SOUGHT.items() for key in ids.get(name, ())}
        first = self.table.rows
        lines = [self._line(span, kind, kinds, sought) for span in plane.lines]
        used: dict[LineKind, _PlaneMetas] = {}
        for line in lines:
            metas = used.setdefault(line.kind, _PlaneMetas(used=np.zeros(len(plane.metas) + 1, np.bool_)))
            meta = self.table.meta[line.first : line.last]
            for block in blocks(len(meta)):
                metas.used[meta[block]] = True
        for line_kind_, metas in used.items():
            self._number(index, plane, kind, line_kind_, metas)
        for line in lines:
            rows = slice(line.first, line.last)
            self.table.meta[rows] = take(used[line.kind].numbers, self.table.meta[rows])
            self.table.start_ns[rows] += line.wire.timestamp_ns
            self._add_line(index, kind, line)
        likely = dict.fromkeys(sought, np.empty(0, np.int64)) | self.table.take_likely()
        numbers, last = self.table.take_numbers(), self.table.rows
        self.places.append(StatPlace(first=first, last=last, plane=plane, ids=ids, likely=likely, numbers=numbers))
        self.planes.append(
            Plane(
                index=index,
                name=plane.name,
                kind=kind,
                ordinal=ordinal(plane.name),
                events=last - first + sum(line.dropped for line in lines),
                stats=plain_stats(self.source, plane.stats, plane.stat_names),
            )
        )

    def _line(self, span: tuple[int, int], plane: PlaneKind, kinds: Kinds, sought: Mapping[int, bool]) -> _ReadLine:
        wire = WireLine()
        first, last, dropped = self.table.add_line(self.reader.read(*span, wire, kinds, sought))
        kind = line_kind(wire.name or wire.display_name, plane)
        return _ReadLine(wire=wire, kind=kind, first=first, last=last, dropped=dropped)

    def _number(self, index: int, plane: WirePlane, kind: PlaneKind, line: LineKind, metas: _PlaneMetas) -> None:
        """Number the metadata used on lines of one kind."""
        positions = np.flatnonzero(metas.used)
        base = len(self.meta_rows.name)
        metas.numbers = np.zeros(len(metas.used), np.int32)
        metas.numbers[positions] = np.arange(base, base + len(positions))
        add, meaning, rows = self.strings.add, meanings(kind, line), self.meta_rows
        names, said = [*plane.metas.names, _UNKNOWN], plane.metas.stats
        for row, position in enumerate(positions.tolist(), base):
            hlo_category = ""
            if position in said:
                stats = plain_stats(self.source, said[position], plane.stat_names)
                self.meta_stats.append(MetaStats(row=row, stats=stats))
                hlo_category = str(stats.get(StatName.HLO_CATEGORY, ""))
            name = names[position] or f"#{plane.metas.ids[position]}"
            category, op_name, op_type = meaning(name, hlo_category)
            rows.name.append(add(name))
            rows.op_name.append(add(op_name))
            rows.op_type.append(add(op_type))
            rows.category.append(category)
        rows.plane += [index] * len(positions)

    def _add_line(self, plane: int, kind: PlaneKind, line: _ReadLine) -> None:
        self.lines.append(
            Line(
                index=len(self.lines),
                plane=plane,
                id=line.wire.id,
                name=line.wire.name or line.wire.display_name,
                kind=line.kind,
                first=line.first,
                last=line.last,
                derived=is_derived(kind, line.kind),
                dropped=line.dropped,
            )
        )
        self.read.append(line)

    def _stats(self) -> XplaneStats:
        return XplaneStats(
            source=self.source,
            at=self.table.stats_at,
            size=self.table.stats_size,
            places=self.places,
            metas=self.meta_stats,
            occurrences=self.table.occurrences,
        )

    def _programs(self, trace: OpTrace) -> tuple[Program, ...]:
        """The compiled programs in the metadata planes."""
        ops = frozenset(trace.stats.of_events(StatName.HLO_OP).texts or ())
        held = [wire for wire in self.space.planes if plane_kind(wire.name) is PlaneKind.METADATA]
        return tuple(program for wire in held for program in hlo_signature.programs(self.source, wire, ops))

    def _clock(self) -> tuple[int, int]:
        """Zero on the lines' clock, and the wall clock at that moment."""
        said = self._environment("profile_start_time")
        bases = [line.wire.timestamp_ns for line in self.read if line.first < line.last]
        if bases and min(bases) > _EPOCH_NS:
            zero = min(said or min(bases), *bases)
            return zero, zero
        return 0, said

    def _duration(self, events: Events, started: int) -> int:
        stopped = self._environment("profile_stop_time")
        ends = (events.start_ns[block] + events.dur_ns[block] for block in blocks(len(events)))
        last = max((int(part.max()) for part in ends), default=0)
        return max(last, stopped - started) if started and stopped > started else last

    def _environment(self, name: str) -> int:
        values = [plane.stats.get(name) for plane in self.planes if plane.kind is PlaneKind.ENVIRONMENT]
        return next((value for value in values if isinstance(value, int)), 0)

    def _diagnostics(self) -> tuple[Diagnostic, ...]:
        said = [f"the profiler reported an error: {text}" for text in self.space.errors]
        said += [f"the profiler warned: {text}" for text in self.space.warnings]
        if self.strings.has(_UNKNOWN):
            said.append("some events refer to metadata that is missing from the file")
        return tuple(Diagnostic(code="DX120", text=f"{self.source.name}: {text}") for text in said)


def _roots(trace: OpTrace, rows: tuple[int, int], category: I8) -> I32:
    """Kinds of events that the program marked as roots of steps, without a number: ``Trace("train", _r=1)``.

    TensorFlow marks its own runs so too; they have a meaning of their own, or lead to events of other threads.
    """
    marked = trace.stats.of_events(StatName.STEP_ROOT, *rows)
    metas = np.unique(trace.events.meta[marked.rows[marked.values != 0]])
    producers = trace.events.meta[trace.stats.of_events(StatName.PRODUCER_ID, *rows).rows] if len(metas) else metas
    found: I32 = metas[(category[metas] == Category.OTHER) & ~np.isin(metas, producers)]
    return found


def _with_kinds_by_stats(trace: OpTrace) -> OpTrace:
    """Classify host events by their stats: a step's number, or its root, marks a step; XLA on the CPU names its ops."""
    category, op_type = trace.metas.category.copy(), trace.metas.op_type.copy()
    op_name = trace.metas.op_name.copy()
    strings = list(trace.strings)
    for plane in trace.planes:
        if plane.kind is not PlaneKind.HOST:
            continue
        rows = trace.rows_of(plane)
        category[trace.events.meta[trace.stats.of_events(StatName.STEP_NUM, *rows).rows]] = Category.STEP
        category[_roots(trace, rows, category)] = Category.STEP
        ops = np.flatnonzero(np.bincount(trace.events.meta[trace.stats.of_events(StatName.HLO_OP, *rows).rows]))
        category[ops] = Category.OP
        op_name[ops] = trace.metas.name[ops]
        types = [hlo_type(strings[name]) for name in op_name[ops].tolist()]
        op_type[ops] = np.arange(len(strings), len(strings) + len(types))
        strings += types
    metas = replace(trace.metas, category=category, op_name=op_name, op_type=op_type)
    return replace(trace, metas=metas, strings=tuple(strings))
