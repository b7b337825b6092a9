"""The checksum of a whole file: no byte of it can be changed unseen, and other readers of Parquet do not mind it."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.store import tables, whole_files


@pytest.fixture(scope="module", name="data")
def _data() -> bytes:
    return tables.encode({"at_ns": list(range(300)), "type": ["a", "b", "c"] * 100}, {"log_file": "3"})


def test_every_byte_is_covered(data: bytes) -> None:
    """A bit of any byte, head, pages, their heads, checksum and footer, makes the file unreadable."""
    for at in range(len(data)):
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        with pytest.raises((ValueError, pa.ArrowException)):
            tables.read_table(bytes(bad))


@given(at=st.integers(0), length=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_runs_of_bytes_are_covered(data: bytes, at: int, length: int, seed: int) -> None:
    """Neither can a run of bytes be exchanged, nor the end be cut off."""
    at %= len(data)
    bad = data[:at] + random.Random(seed).randbytes(length) + data[at + length :]
    for changed in {bad, data[:at]} - {data}:
        with pytest.raises((ValueError, pa.ArrowException)):
            tables.read_table(changed)


def test_other_readers_read_it(data: bytes, tmp_path: Path) -> None:
    """Pyarrow alone reads what was written, with its metadata."""
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    table = pq.read_table(path)
    assert table.column("at_ns").to_pylist() == list(range(300))
    assert (table.schema.metadata or {})[b"log_file"] == b"3"


def test_a_file_of_an_earlier_version_has_none() -> None:
    """Files without a checksum are read as before."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    data = bytes(sink.getvalue())
    whole_files.check(data)
    assert tables.read_table(data).column("a").to_pylist() == [1, 2]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"\xff" * 12, whole_files.MAGIC * 3])
def test_what_is_no_parquet_file_is_refused(data: bytes) -> None:
    """Whatever is given, the answer is a ValueError."""
    with pytest.raises((ValueError, pa.ArrowException)):
        tables.read_table(data)
