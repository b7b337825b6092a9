"""A timeline's columns on disk: what was written is read, what is damaged is refused, nothing half is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepscope.model.api.timeline import SpanName, Timeline, TimelineSeries
from stepscope.store import span_cache
from stepscope.tables.errors import SessionError


def column(*values: int) -> np.ndarray:
    """One column."""
    return np.array(values, np.int64)


def write(folder: Path) -> None:
    """Two lanes, the second one with a level."""
    marks = {name: column(1, 2) for name in span_cache.MARK_COLUMNS}
    with span_cache.Writer(folder) as writer:
        writer.add({"start": column(1), "end": column(2), "name": column(0)})
        lane = writer.add({"start": column(3, 5, 7), "end": column(4, 6, 8), "name": column(1, 1, 0)})
        writer.add_level(lane, 20, marks)
        names = (SpanName(text="a", category="op"), SpanName(text="b", category="op"))
        series = TimelineSeries(key="cpu", group="", title="CPU", unit="cores", about="", samples=2, most=0.5)
        writer.add_series(span_cache.SeriesColumns(column(1), column(2), np.array([0.25])))
        writer.add_series(span_cache.SeriesColumns(column(1, 2), column(2, 3), np.array([0.5, 0.0])))
        writer.finish(Timeline(state="ready"), names, tracks=(), series=(series, series), left_out=(), traces=())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Lanes, levels, counts of names; no temporary folder is left."""
    write(tmp_path / "x")
    reader = span_cache.MappedCache(tmp_path / "x")
    assert reader.lanes == 2
    assert reader.base(1)["start"].tolist() == [3, 5, 7]
    assert reader.index.counts == (2, 2)
    assert {name: column.tolist() for name, column in reader.sums(1).items()} == {
        "name": [0, 1], "count": [1, 2], "total": [1, 2], "most": [1, 1],
    }  # fmt: skip
    assert reader.index.timeline.spans == 4
    assert reader.stored(0, 30) == (span_cache.WHOLE, 0, 1)
    assert reader.stored(1, 19) == (span_cache.WHOLE, 1, 4)
    assert reader.columns(span_cache.WHOLE)["start"].tolist() == [1, 3, 5, 7]
    assert reader.stored(1, 25) == (20, 0, 2)
    assert reader.columns(20)["row"].tolist() == [1, 2]
    assert [column.tolist() for column in reader.series(1)] == [[1, 2], [2, 3], [0.5, 0.0]]
    assert [folder.name for folder in tmp_path.iterdir()] == ["x"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    """A writer that is left by an error takes all back."""
    with pytest.raises(KeyError), span_cache.Writer(tmp_path / "x") as writer:
        writer.add({"start": column(1)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["base.end", "sums.total", "20.count", "series.value", span_cache.INDEX])
def test_what_is_cut_short_is_refused(tmp_path: Path, file: str) -> None:
    """With the folder's name, for every kind of file."""
    write(tmp_path / "x")
    path = tmp_path / "x" / file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SessionError, match="not a timeline"):
        span_cache.MappedCache(tmp_path / "x")
