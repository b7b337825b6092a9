"""A session as tables for SQL and data frames: steps, spans, ops and findings (columns: docs/exporting.md).

Plain types alone: int64, float64, bool, string. What is not known is null. Rows are given as they come, some at a
time, to whatever takes them: files (``parquet_tables``) or memory (``Collected``).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from stepscope.derive import steps_view
from stepscope.derive.one_step import step_numbers, step_table
from stepscope.derive.optrace.host import event_nesting
from stepscope.exporters.ranges import inside
from stepscope.model.report.components import COMPONENTS
from stepscope.timeline import joint_steps, joint_tracks
from stepscope.timeline.span_track import DistinctNames
from stepscope.timeline.tracks import Spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stepscope.derive.view import SessionView
    from stepscope.exporters.ranges import Range
    from stepscope.tables.findings import Finding
    from stepscope.tables.records import I64, Bool
    from stepscope.timeline.joint_tracks import ShownSession
    from stepscope.timeline.span_track import SpanTrack

_I, _F, _B, _S = pa.int64(), pa.float64(), pa.bool_(), pa.string()
_TIMES = {"start_ns": _I, "dur_ns": _I}
_PLACE = {"file": _S, "line": _I, "function": _S}
_TRACK = {"member": _S, "pid": _I, "group": _S, "track": _S, "kind": _S, "name": _S, "category": _S}
SCHEMAS: dict[str, dict[str, pa.DataType]] = {
    "steps": {"member": _S, "step": _I, **_TIMES, "steady": _B, "observed": _B, "samples": _I}
    | {f"{name.replace('-', '_')}_ns": _F for name in COMPONENTS},
    "spans": {**_TRACK, **_TIMES, **_PLACE},
    "ops": {
        "trace": _S,
        "event": _I,
        **_TRACK,
        "op_name": _S,
        "op_type": _S,
        **_TIMES,
        "self_ns": _I,
        **_PLACE,
        "makes": _S,
    },
    "findings": {"rank": _I, "code": _S, "name": _S, "title": _S, "severity": _S, "confidence": _F, "origin": _S}
    | {"cost_ratio": _F, "cost_low_ratio": _F, "cost_high_ratio": _F, "cost_ns_per_step": _I, "cost_basis": _S}
    | {"symptom": _S, "cause": _S, "introduced_stage": _S, "exposed_stage": _S, "pipeline_stage": _S}
    | {**_PLACE, "remedy": _S, "what_if": _S},
}
"""Columns of each table."""
ROWS = 1 << 17
"""Rows that are given at a time, at most."""


class TakesRows(Protocol):
    """Where the rows of a table go."""

    def add(self, count: int, columns: Mapping[str, pa.Array]) -> None:
        """Rows; a column that is not given is null."""


class Collected:
    """A table in memory."""

    def __init__(self, name: str) -> None:
        self._schema = pa.schema(list(SCHEMAS[name].items()))
        self._parts: list[pa.Table] = []

    def add(self, count: int, columns: Mapping[str, pa.Array]) -> None:
        """Rows; a column that is not given is null."""
        self._parts.append(rows_of(self._schema, count, columns))

    def table(self) -> pa.Table:
        """All rows so far."""
        return pa.concat_tables([self._schema.empty_table(), *self._parts])


def rows_of(schema: pa.Schema, count: int, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Rows of a table; a column that is not given is null."""
    arrays = [columns[one.name] if one.name in columns else pa.nulls(count, one.type) for one in schema]
    return pa.table(arrays, schema=schema)


def fill(
    tables: Mapping[str, TakesRows], view: SessionView, within: Range | None, findings: Sequence[Finding] = ()
) -> None:
    """Give each of the tables its rows; a table of ``SCHEMAS`` that is not among them is left out.

    Args:
        tables: by their names in ``SCHEMAS``.
        view: the session.
        within: nanoseconds since session start; None: all of it.
        findings: those of the whole session, whatever the range.

    Raises:
        SessionError: the session is damaged.
    """
    parts = joint_tracks.of(view)
    if "steps" in tables:
        for part in parts:
            _add_steps(tables["steps"], part, within)
    if "spans" in tables or "ops" in tables:
        _add_tracks(tables, parts, within)
    if "findings" in tables:
        _add_findings(tables["findings"], findings)


def _add_tracks(tables: Mapping[str, TakesRows], parts: Sequence[ShownSession], within: Range | None) -> None:
    names = DistinctNames()
    for part in parts:
        spans = Spans(part.view, lambda _ratio, _doing: None, names)
        records = spans.of_processes() if "spans" in tables else ()
        for track in chain(records, spans.of_traces() if "ops" in tables else ()):
            _add_track(tables, part.placed(track), names, part, within)
    if "spans" in tables:
        for track in chain(joint_tracks.lost(parts, names), joint_steps.tracks(parts, names)):
            _add_track(tables, track, names, parts[0], within)


def _add_steps(table: TakesRows, part: ShownSession, within: Range | None) -> None:
    mine = steps_view.of(part.view)
    if mine is None:
        return
    steps = mine.steps
    start = part.times(steps.starts)
    rows = inside(start, start + steps.durations, within)
    columns = {
        "member": _same(part.label, len(rows)),
        "step": pa.array(step_numbers.of(steps)[rows]),
        "start_ns": pa.array(start[rows]),
        "dur_ns": pa.array(steps.durations[rows]),
        "steady": pa.array(steps.steady[rows]),
        "observed": pa.array(~steps.unobserved[rows]),
        "samples": _known(steps.samples[rows], steps.samples[rows] > 0),
    }
    if steps.steady_count:
        found = step_table.build(mine)
        for number, name in enumerate(COMPONENTS):
            dense = np.full(len(steps), np.nan)
            dense[found.index] = found.anatomy.per_step[:, number]
            columns[f"{name.replace('-', '_')}_ns"] = _known(dense[rows], ~np.isnan(dense[rows]))
    table.add(len(rows), columns)


def _add_track(
    tables: Mapping[str, TakesRows], track: SpanTrack, names: DistinctNames, part: ShownSession, within: Range | None
) -> None:
    every = inside(track.start, track.start + track.dur, within)
    of_trace = bool(track.trace)
    self_ns = event_nesting.self_times(track.dur, event_nesting.parents(track.start, track.dur)) if of_trace else None
    pids = [worker.info.pid for worker in part.view.session.workers if worker.info.key == track.worker]
    for first in range(0, len(every), ROWS):
        rows = every[first : first + ROWS]
        used, code = np.unique(track.name[rows], return_inverse=True)
        of_names = [names.items[number] for number in used.tolist()]
        line = np.array([name.line for name in of_names], np.int64)[code]
        same = {"member": part.label, "group": track.group, "track": track.title, "kind": track.kind}
        columns = {name: _same(text, len(rows)) for name, text in same.items()}
        columns |= {
            "name": _texts([name.text for name in of_names], code),
            "category": _texts([name.category for name in of_names], code),
            "start_ns": pa.array(track.start[rows]),
            "dur_ns": pa.array(track.dur[rows]),
            "file": _texts([name.file for name in of_names], code),
            "line": _known(line, line > 0),
            "function": _texts([name.function for name in of_names], code),
        }
        if pids:
            columns["pid"] = pa.array(np.full(len(rows), pids[0], np.int64))
        if self_ns is not None:
            columns["makes"] = _texts([name.makes for name in of_names], code)
            columns |= _of_events(track, rows) | {"self_ns": pa.array(self_ns[rows])}
        tables["ops" if of_trace else "spans"].add(len(rows), columns)


def _of_events(track: SpanTrack, rows: I64) -> dict[str, pa.Array]:
    """What an op trace says of its events besides their names."""
    events = track.first_event + rows
    columns = {"trace": _same(track.trace, len(rows)), "event": pa.array(events)}
    if track.optrace is not None:
        metas, strings = track.optrace.metas, track.optrace.strings
        for name, column in (("op_name", metas.op_name), ("op_type", metas.op_type)):
            used, code = np.unique(column[track.optrace.events.meta[events]], return_inverse=True)
            columns[name] = _texts([strings[number] for number in used.tolist()], code)
    return columns


def _add_findings(table: TakesRows, findings: Sequence[Finding]) -> None:
    rows = [_finding(rank, one) for rank, one in enumerate(findings, 1)]
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in SCHEMAS["findings"].items()}
    table.add(len(rows), columns)


def _finding(rank: int, one: Finding) -> dict[str, str | float | None]:
    row: dict[str, str | float | None] = {"rank": rank}
    for name in ("code", "name", "title", "severity", "confidence", "origin", "symptom", "cause"):
        row[name] = getattr(one, name)
    row |= {name: getattr(one, name) for name in ("introduced_stage", "exposed_stage", "pipeline_stage")}
    cost = one.cost
    row |= {"cost_ratio": cost.ratio, "cost_low_ratio": cost.low, "cost_high_ratio": cost.high}
    row |= {"cost_ns_per_step": cost.ns_per_step, "cost_basis": cost.basis}
    if one.where:
        row |= {"file": one.where[0].file, "line": one.where[0].line, "function": one.where[0].function or None}
    if one.remedies:
        row |= {"remedy": one.remedies[0].text, "what_if": one.remedies[0].what_if}
    return row


def _same(text: str, count: int) -> pa.Array:
    """One text in each row; "" is null."""
    return pa.repeat(pa.scalar(text or None, _S), count)


def _texts(texts: Sequence[str], code: I64) -> pa.Array:
    """A text for each row, by its number; "" is null."""
    return pa.array([text or None for text in texts], _S).take(pa.array(code))


def _known(values: I64, known: Bool) -> pa.Array:
    """Numbers, null where they are not known."""
    return pa.array(values, mask=~known)
