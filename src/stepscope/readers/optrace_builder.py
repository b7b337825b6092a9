"""Builds an op trace event by event: for formats that are read that way, and for tests.

``readers.xplane.xspace`` does not use it: it fills whole columns at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from stepscope.readers.op_names import Meaning, hlo_type, is_derived, meaning
from stepscope.readers.stat_columns import Strings, column_of_pairs
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
    TraceSource,
)
from stepscope.tables.optrace_stats import LoadedStats, PlainStat, StatName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stepscope.tables.optrace import I32
    from stepscope.tables.optrace_stats import StatColumn
    from stepscope.tables.records import F64, I64

PS_PER_NS = 1000


class _Plane(Struct):
    name: str
    kind: PlaneKind
    ordinal: int
    stats: Mapping[str, PlainStat]


class _Line(Struct):
    plane: int
    name: str
    kind: LineKind
    id: int


class _Columns(Struct):
    """Events in order of arrival: one list per column."""

    start_ps: list[int] = field(default_factory=list)
    dur_ps: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    meta: list[int] = field(default_factory=list)

    def arrays(self) -> tuple[I64, ...]:
        """All columns as arrays."""
        return tuple(np.array(one, np.int64) for one in (self.start_ps, self.dur_ps, self.line, self.meta))


class OpTraceBuilder:
    """Collects planes, lines and events in any order; ``build`` sorts them as the model requires."""

    def __init__(self, source: TraceSource) -> None:
        """Begin an empty trace."""
        self.source = source
        self.strings = Strings()
        self._planes: list[_Plane] = []
        self._lines: list[_Line] = []
        self._metas: dict[tuple[int, str, Meaning], int] = {}
        self._meanings: dict[tuple[str, PlaneKind, LineKind, str, bool], Meaning] = {}
        self._events = _Columns()
        self._filled: tuple[I64, ...] = ()
        self._stats: dict[str, list[tuple[int, PlainStat]]] = {}
        self._dropped: list[Dropped] = []
        self._diagnostics: list[Diagnostic] = []

    def plane(
        self, name: str, kind: PlaneKind, *, ordinal: int = -1, stats: Mapping[str, PlainStat] | None = None
    ) -> int:
        """Add a plane; returns its index."""
        self._planes.append(_Plane(name=name, kind=kind, ordinal=ordinal, stats=stats or {}))
        return len(self._planes) - 1

    def line(self, plane: int, name: str, kind: LineKind = LineKind.THREAD, line_id: int = 0) -> int:
        """Add a line to a plane; returns a number for ``event``."""
        self._lines.append(_Line(plane=plane, name=name, kind=kind, id=line_id))
        return len(self._lines) - 1

    def event(
        self,
        line: int,
        name: str,
        start_ns: float,
        dur_ns: float,
        *,
        stats: Mapping[str, PlainStat] | None = None,
        known: Meaning | None = None,
        step: bool = False,
    ) -> int:
        """Add an event; returns its number in order of adding (``build`` gives it another row).

        Args:
            line: number of its line.
            name: its name, which determines its category, op name and op type.
            start_ns: nanoseconds since time zero; a fraction is kept to picoseconds.
            dur_ns: likewise.
            stats: further facts about it.
            known: its meaning, if the format states it.
            step: it marks a step.
        """
        said = stats or {}
        meta = self.meta(
            line,
            name,
            known=known,
            step=step,
            hlo_category=str(said.get(StatName.HLO_CATEGORY, "")),
            hlo_op=StatName.HLO_OP in said,
        )
        number = len(self._events.line)
        self._events.start_ps.append(round(start_ns * PS_PER_NS))
        self._events.dur_ps.append(max(0, round(dur_ns * PS_PER_NS)))
        self._events.line.append(line)
        self._events.meta.append(meta)
        for stat, value in said.items():
            self._stats.setdefault(stat, []).append((number, value))
        return number

    def meta(
        self,
        line: int,
        name: str,
        *,
        known: Meaning | None = None,
        step: bool = False,
        hlo_category: str = "",
        hlo_op: bool = False,
    ) -> int:
        """The number of a kind of event; a new kind gets the next number.

        Args:
            line: number of a line on which it occurs.
            name: see ``event``, as ``known`` and ``step``.
            known: likewise.
            step: likewise.
            hlo_category: XLA's category of the op, if the format has it.
            hlo_op: the format says that it is an op of XLA.
        """
        place = self._lines[line]
        if known is None:
            kind = self._planes[place.plane].kind
            key = (name, kind, place.kind, hlo_category, step)
            known = self._meanings.get(key)
            if kind is PlaneKind.HOST and hlo_op:  # XLA on the CPU names its ops
                known = Meaning(category=Category.OP, op_name=name, op_type=hlo_type(name))
            elif known is None:
                known = self._meanings[key] = meaning(name, kind, place.kind, hlo_category=hlo_category, step=step)
        return self._metas.setdefault((place.plane, name, known), len(self._metas))

    def kinds_of_lines(self) -> tuple[int, I64]:
        """The number of places in which a name has one meaning, plane and kind of line, and that of each line."""
        known: dict[tuple[int, LineKind], int] = {}
        numbers = [known.setdefault((line.plane, line.kind), len(known)) for line in self._lines]
        return len(known), np.array(numbers, np.int64)

    def fill(self, start_ns: F64, dur_ns: F64, line: I64, meta: I64) -> None:
        """Add all events at once, instead of ``event`` for each: see there. Shapes: [event]."""
        start_ps, dur_ps = (np.rint(times * PS_PER_NS).astype(np.int64) for times in (start_ns, dur_ns))
        self._filled = (start_ps, np.maximum(dur_ps, 0), line, meta)

    def drop(self, dropped: Dropped) -> None:
        """Record what was deliberately omitted."""
        self._dropped.append(dropped)

    def diagnostic(self, code: str, text: str) -> None:
        """Record what was damaged or repaired."""
        self._diagnostics.append(Diagnostic(code=code, text=text))

    def build(self, stats: Callable[[I64], Mapping[str, StatColumn]] | None = None) -> OpTrace:
        """The trace of everything added. ``stats``: the columns of what ``fill`` added, given the row of each event.

        Raises:
            FormatError: a time is none.
        """
        try:
            start_ps, dur_ps, line, meta = self._filled or self._events.arrays()
        except OverflowError as error:
            what = "an event begins or lasts more than 106 days after the first"
            raise FormatError(f"{self.source.name}: damaged: {what}; expected times of one run") from error
        order_of_lines = sorted(range(len(self._lines)), key=lambda i: self._lines[i].plane)
        rank = np.empty(len(self._lines), np.int32)
        rank[order_of_lines] = np.arange(len(self._lines), dtype=np.int32)
        line = rank[line].astype(np.int64) if len(start_ps) else line
        order = np.lexsort((-dur_ps, start_ps, line))
        events = make_events(start_ps[order], dur_ps[order], line[order], meta[order])
        bounds = np.searchsorted(events.line, np.arange(len(self._lines) + 1))
        lines = tuple(
            Line(
                index=index,
                plane=self._lines[number].plane,
                id=self._lines[number].id,
                name=self._lines[number].name,
                kind=self._lines[number].kind,
                derived=is_derived(self._planes[self._lines[number].plane].kind, self._lines[number].kind),
                first=int(bounds[index]),
                last=int(bounds[index + 1]),
            )
            for index, number in enumerate(order_of_lines)
        )
        row_of = np.empty(len(order), np.int64)
        row_of[order] = np.arange(len(order))
        metas = self._build_metas()
        return OpTrace(
            source=self.source,
            planes=self._build_planes(lines),
            lines=lines,
            events=events,
            metas=metas,
            strings=self.strings.all(),
            stats=LoadedStats(events=stats(row_of) if stats else self._columns(row_of)),
            dropped=tuple(self._dropped),
            diagnostics=tuple(self._diagnostics),
        )

    def _columns(self, row_of: I64) -> dict[str, StatColumn]:
        return {
            name: column_of_pairs(name, [(int(row_of[number]), value) for number, value in values])
            for name, values in self._stats.items()
        }

    def _build_metas(self) -> Metas:
        add = self.strings.add
        return Metas(
            name=np.array([add(name) for _, name, _ in self._metas], np.int32),
            op_name=np.array([add(known.op_name) for _, _, known in self._metas], np.int32),
            op_type=np.array([add(known.op_type) for _, _, known in self._metas], np.int32),
            category=np.array([known.category for _, _, known in self._metas], np.int8),
            plane=np.array([plane for plane, _, _ in self._metas], np.int32),
        )

    def _build_planes(self, lines: Sequence[Line]) -> tuple[Plane, ...]:
        counts = [0] * len(self._planes)
        for line in lines:
            counts[line.plane] += line.last - line.first
        return tuple(
            Plane(index=i, name=p.name, kind=p.kind, ordinal=p.ordinal, events=counts[i], stats=p.stats)
            for i, p in enumerate(self._planes)
        )


def make_events(start_ps: I64, dur_ps: I64, line: I32 | I64, meta: I32 | I64) -> Events:
    """Columns in nanoseconds of sorted events in picoseconds: see ``tables.optrace`` on rounding."""
    start_ns = start_ps // PS_PER_NS
    dur_ns = (start_ps + dur_ps) // PS_PER_NS - start_ns
    rem = dur_ps - dur_ns * PS_PER_NS
    return Events(
        start_ns=start_ns,
        dur_ns=dur_ns,
        line=line.astype(np.int32, copy=False),
        meta=meta.astype(np.int32, copy=False),
        dur_rem_ps=rem.astype(np.int16) if rem.any() else None,
    )
