"""Parquet tables of a session: its rows, their columns, and that the documentation names them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.report.samples import finding
from tests.web.timeline_sessions import STEP, stored

from stepscope import store
from stepscope.derive.view import SessionView
from stepscope.exporters import arrow_tables, parquet_tables
from stepscope.timeline.span_track import SpanTrack
from stepscope.timeline.tracks import Spans

DOCS = Path(__file__).resolve().parents[2] / "docs" / "exporting.md"
Row = dict[str, int | float | str | None]


@pytest.fixture(scope="module", name="view")
def _view(tmp_path_factory: pytest.TempPathFactory) -> SessionView:
    return SessionView(store.open_session(stored(tmp_path_factory.mktemp("traced"), traced=True)))


def read(folder: Path, name: str) -> list[Row]:
    table = pq.read_table(folder / f"{name}.parquet")
    assert {one.name: one.type for one in table.schema} == arrow_tables.SCHEMAS[name]
    rows: list[Row] = table.to_pylist()
    return rows


def drawn(view: SessionView) -> tuple[list[SpanTrack], Spans]:
    spans = Spans(view, lambda _ratio, _doing: None)
    return [*spans.of_processes(), *spans.of_traces()], spans


@pytest.mark.parametrize("rows", [7, 1 << 17])
def test_every_span_is_a_row(view: SessionView, tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of records in one table, of op traces in another, in row groups of any size; with names and places."""
    monkeypatch.setattr(arrow_tables, "ROWS", rows)
    counts = parquet_tables.write(view, tmp_path, None, [])
    tracks, spans = drawn(view)
    found = {name: read(tmp_path, name) for name in ("spans", "ops")}
    assert counts == {"steps": 200, "findings": 0} | {name: len(made) for name, made in found.items()}
    for name, made in found.items():
        expected = Counter(
            (track.title, spans.names.items[number].text, start, dur)
            for track in tracks
            if bool(track.trace) == (name == "ops")
            for number, start, dur in zip(track.name.tolist(), track.start.tolist(), track.dur.tolist(), strict=True)
        )
        assert Counter((row["track"], row["name"], row["start_ns"], row["dur_ns"]) for row in made) == expected
    callback = next(row for row in found["spans"] if str(row["name"]).startswith("Plot"))
    assert (callback["category"], callback["line"]) == ("callbacks", 30)
    assert callback["pid"] == view.session.workers[0].info.pid
    op = next(row for row in found["ops"] if row["op_type"] == "MatMul")
    assert (str(op["op_name"]).endswith("MatMul"), op["self_ns"], op["trace"]) == (True, op["dur_ns"], "ops-001")


def test_steps_have_their_parts(view: SessionView, tmp_path: Path) -> None:
    """Parts add up to the step; a number is that of ``report --step``; what is not known is null."""
    parquet_tables.write(view, tmp_path, (STEP, 3 * STEP), [])
    rows = read(tmp_path, "steps")
    assert [row["step"] for row in rows] == [1, 2]
    assert [row["samples"] for row in rows] == [None, None]
    parts = [name for name in rows[0] if name.endswith("_ns") and name not in {"start_ns", "dur_ns"}]
    for row in rows:
        assert sum(float(row[name] or 0) for name in parts) == pytest.approx(row["dur_ns"])
        assert row["callbacks_ns"] == pytest.approx(7_000_000)
    assert {row["start_ns"] for row in read(tmp_path, "spans")} >= {STEP, 2 * STEP}


def test_findings_are_rows(view: SessionView, tmp_path: Path) -> None:
    """By rank, with cost and the first place; without one it is null."""
    parquet_tables.write(view, tmp_path, (0, 1), [finding("INP003"), finding("HST004")])
    rows = read(tmp_path, "findings")
    assert [(row["rank"], row["code"]) for row in rows] == [(1, "INP003"), (2, "HST004")]
    assert all(isinstance(row["cost_ratio"], float) for row in rows)
    assert np.isfinite([float(row["cost_high_ratio"] or 0) for row in rows]).all()


def test_every_column_is_documented() -> None:
    """In docs/exporting.md, below its table's name, and no other."""
    text = DOCS.read_text("utf-8")
    for name, columns in arrow_tables.SCHEMAS.items():
        section = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
        assert section is not None
        cells = re.findall(r"^\| (`[^|]*) \|", section[1], re.MULTILINE)
        assert [word for cell in cells for word in re.findall(r"`(\w+)`", cell)] == list(columns)
