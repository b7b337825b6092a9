"""Rows as a Parquet file."""

from __future__ import annotations

import io
import math
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from stepscope.fleet import schema
from stepscope.fleet.rows import Row, encoded
from stepscope.tables.place import Place

WHOLE = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
SHARE = st.none() | st.floats()
TEXT = st.text(max_size=30)
ROWS = st.lists(
    st.builds(
        Row,
        kind=st.sampled_from(schema.KINDS),
        name=TEXT,
        text=TEXT,
        detail=TEXT,
        file=TEXT,
        line=st.integers(0, 1 << 40),
        function=TEXT,
        time_ns=WHOLE,
        self_ns=WHOLE,
        cpu_ns=WHOLE,
        number=WHOLE,
        ratio=SHARE,
        low=SHARE,
        high=SHARE,
    ),
    max_size=12,
)


@given(ROWS)
def test_round_trip(rows: list[Row]) -> None:
    """What is written is read; a number that is none is null, and the same rows give the same bytes."""
    data = encoded("s", rows)
    assert data == encoded("s", rows)
    found = pq.read_table(io.BytesIO(data)).to_pylist()
    expected = [asdict(row) for row in sorted(rows, key=lambda row: schema.KINDS.index(row.kind))]
    for row in expected:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                row[name] = None
            if isinstance(value, str):
                row[name] = value.encode("utf-8", "replace").decode()
    assert found == [{"session": "s", **row} for row in expected]


def test_columns_are_what_is_documented(tmp_path: Path) -> None:
    """Text is never null, whole numbers are whole; DuckDB reads the same names and types."""
    data = encoded("s", [Row(kind="about", name="user", text="ann")])
    read = pq.ParquetFile(io.BytesIO(data))
    assert [column.name for column in read.schema] == [one.name for one in schema.COLUMNS]
    assert read.num_row_groups == 1
    path = tmp_path / "part.parquet"
    path.write_bytes(data)
    asked = f"SELECT typeof(time_ns), typeof(low), text FROM read_parquet('{path}')"
    assert duckdb.connect().execute(asked).fetchall() == [("BIGINT", "DOUBLE", "ann")]


def test_long_text_is_cut() -> None:
    """A text of any length does not make a part large."""
    assert len(encoded("s", [Row(kind="stack", name="cpu", text="f;" * 1_000_000)])) < 10_000


def test_a_place_below_the_working_directory() -> None:
    """Is named without it."""
    row = Row(kind="finding", name="X").at(
        Place(file="/home/ann/nets/train.py", line=3, function="f"), "/home/ann/nets"
    )
    assert (row.file, row.line, row.function) == ("train.py", 3, "f")
    assert Row(kind="finding", name="X").at(None, "/") == Row(kind="finding", name="X")
