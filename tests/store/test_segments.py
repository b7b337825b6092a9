"""Small segments become large ones, and every row is read once, in order, at each moment of it."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.store import open_session, segments
from stepscope.store.segments import counting
from stepscope.store.writer import LogPosition, SessionWriter
from stepscope.tables import layout
from stepscope.tables.records import ProcessTable

from .conftest import ORIGIN_NS, line, records


def test_a_long_run_has_few_segments(made: Path) -> None:
    """After some hundred flushes each table has a few dozen files, and all rows in order."""
    writer = SessionWriter(made)
    for number in range(400):
        columns = {name: np.array([number], np.int64) for name in ProcessTable.__struct_fields__}
        writer.write_table("process", ProcessTable(**columns))
        if number % 5 == 0:
            writer.write_records("7-70", records(150 + 2 * number, 10))
            writer.write_events("7-70", [line("metric", ORIGIN_NS + number, name="x", value=1)], LogPosition(3, number))
            writer.write_rival_names(number // 5, [f"rival {number}"])
    assert len(list((made / "tables").iterdir())) < 80
    assert len(list((made / "workers" / "7-70").iterdir())) < 80
    session = open_session(made)
    assert session.process.at_ns.tolist() == list(range(400))
    assert session.workers[0].records.seq.tolist() == list(range(1, 150 + 800 + 1))
    assert [e.at for e in session.workers[0].events][2:] == list(range(0, 400, 5))
    assert list(session.rival_names) == [f"rival {n}" for n in range(0, 400, 5)]
    again = SessionWriter(made)
    assert again.durable_log("7-70") == LogPosition(3, 395)
    assert again.durable_records("7-70") == 950
    assert again.rival_names() == 80


def test_a_merge_that_was_cut_short(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the merged segment is there and the small ones too, every row counts once."""
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
    writer = SessionWriter(made)
    for number in range(segments.MERGE_COUNT):
        columns = {name: np.array([number], np.int64) for name in ProcessTable.__struct_fields__}
        writer.write_table("process", ProcessTable(**columns))
    assert len(list((made / "tables").iterdir())) == segments.MERGE_COUNT + 1
    assert open_session(made).process.at_ns.tolist() == list(range(segments.MERGE_COUNT))
    assert SessionWriter(made)._of_session("process").next() == segments.MERGE_COUNT


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20))
@settings(deadline=None)
def test_segments_that_count_cover_all(pairs: list[tuple[int, int]]) -> None:
    """Whatever ranges there are: those that count come in order, contain no other, and cover all numbers."""
    names = [layout.segment_name("x", min(p), max(p)) for p in pairs]
    kept = counting(names, "x")
    assert [s.first for s in kept] == sorted({s.first for s in kept})
    assert [s.last for s in kept] == sorted({s.last for s in kept})
    covered = {n for s in kept for n in range(s.first, s.last + 1)}
    assert covered == {n for p in pairs for n in range(min(p), max(p) + 1)}


def test_names_of_others_do_not_count() -> None:
    """Other tables, temporary files and backward ranges are no segments."""
    names = ["host-0-1.parquet", ".process-0-1.parquet.5.tmp", "process-5-2.parquet", "process-1.parquet"]
    assert counting(names, "process") == []
