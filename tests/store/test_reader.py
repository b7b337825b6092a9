"""A session opens whole, damaged, old or not at all, and says which."""

import io
import json
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.model.log.events import BatchSeen, Name
from stepscope.store import open_session, tables
from stepscope.store.tables import MAX_CELLS
from stepscope.store.writer import LogPosition, SessionWriter
from stepscope.tables.errors import IncompatibleSessionError, SessionError
from stepscope.tables.records import HostTable, ProcessTable, RecordTable, RivalTable, Table, ThreadTable

from .conftest import records

INT64 = st.integers(-(2**63), 2**63 - 1)
TABLES: list[type[Table]] = [RecordTable, ProcessTable, ThreadTable, HostTable, RivalTable]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_tables_survive_the_disk(data: st.DataObject) -> None:
    """Whatever int64 values a table holds come back from a Parquet file as they were."""
    kind = data.draw(st.sampled_from(TABLES))
    length = data.draw(st.integers(0, 40))
    columns = {
        name: np.array(data.draw(st.lists(INT64, min_size=length, max_size=length)), np.int64)
        for name in kind.__struct_fields__
    }
    table = kind(**columns)
    back, _ = tables.read_columns(tables.encode(tables.columns_of(table)))
    again = tables.to_table(kind, [back])
    for name, values in columns.items():
        assert getattr(again, name).dtype == np.int64
        assert getattr(again, name).tolist() == values.tolist()


def test_whole_session(made: Path) -> None:
    """Records of all segments come in order of time, events with their moments, sources by their paths."""
    session = open_session(made)
    (worker,) = session.workers
    assert worker.records.seq.tolist() == list(range(1, 151))
    assert worker.records.start_ns.tolist() == [1000 * n for n in range(150)]
    assert worker.all(Name) == [Name(at=5, id=1, text="work")]
    assert session.sources == {"/x/train.py": "print(1)\n"}


def test_moments_inside_of_events_are_rebased_too(made: Path) -> None:
    """The start of the loop that a batch line names counts from the session's start."""
    assert open_session(made).workers[0].all(BatchSeen) == [BatchSeen(at=9, loop=4000, role="train")]


def test_unknown_lines_are_counted(made: Path) -> None:
    """A line type of a newer agent costs a diagnostic, nothing else."""
    texts = [d.text for d in open_session(made).manifest.diagnostics]
    assert texts == [
        "workers/7-70: 1 log lines are damaged or of a type that this version does not know",
    ]


def test_records_that_begin_together_come_longest_first(made: Path) -> None:
    """Equal starts are ordered as nesting is: the enclosing record before the enclosed."""
    table = records(150, 3)
    same = msgspec.structs.replace(table, start_ns=np.zeros(3, np.int64), dur_ns=np.array([5, 50, 20], np.int64))
    SessionWriter(made).write_records("7-70", same)
    first = open_session(made).workers[0].records.take(slice(0, 4))
    assert first.dur_ns.tolist() == [50, 20, 5, 0]


@pytest.mark.parametrize("keep", [0, 10, -1])
def test_truncated_segment(made: Path, keep: int) -> None:
    """A cut segment is left out and named; the other one opens."""
    path = next((made / "workers" / "7-70").glob("records-000000000000*"))
    path.write_bytes(path.read_bytes()[:keep])
    session = open_session(made)
    assert session.workers[0].records.seq.tolist() == list(range(101, 151))
    assert any(path.name in d.text and "left out" in d.text for d in session.manifest.diagnostics)


def test_segment_of_another_shape(made: Path) -> None:
    """A Parquet file whose columns are no numbers is left out and named."""
    path = next((made / "workers" / "7-70").glob("records-000000000100*"))
    path.write_bytes(tables.encode({"start_ns": ["x"], "dur_ns": ["y"]}))
    session = open_session(made)
    assert len(session.workers[0].records) == 100
    assert any(path.name in d.text for d in session.manifest.diagnostics)


def test_column_that_an_older_version_lacked(made: Path) -> None:
    """A missing column is filled with -1, unknown."""
    folder = made / "tables"
    folder.mkdir()
    tables.write(
        folder / "process-000000000000-000000000000.parquet", {"at_ns": np.array([1, 2]), "pid": np.array([7, 7])}
    )
    process = open_session(made).process
    assert process.pid.tolist() == [7, 7]
    assert process.rss_bytes.tolist() == [-1, -1]


def test_merged_segments_count_once(made: Path) -> None:
    """Segments that a larger one contains are not read again, overlapping ones only from where they are new."""
    SessionWriter(made).write_records("7-70", records(0, 120))
    assert open_session(made).workers[0].records.seq.tolist() == list(range(1, 151))


def test_newer_schema(made: Path) -> None:
    """A newer schema is refused with one line that says what to do."""
    manifest = json.loads((made / "manifest.json").read_text())
    (made / "manifest.json").write_text(json.dumps({**manifest, "schema_version": 99, "new": {}}))
    with pytest.raises(
        IncompatibleSessionError, match=r"session schema 99; this stepscope reads up to 1: update stepscope"
    ):
        open_session(made)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"schema_version": "one"}', b'{"schema_version": 1, "workers": 3}']
)
def test_damaged_manifest(made: Path, content: bytes) -> None:
    """Without a manifest that can be read there is no session, and one line says so."""
    (made / "manifest.json").write_bytes(content)
    with pytest.raises(SessionError, match=r"^damaged: .*manifest\.json: "):
        open_session(made)


def test_no_session(tmp_path: Path) -> None:
    """A missing path, an empty directory and a text file are told apart."""
    with pytest.raises(SessionError, match="no such session"):
        open_session(tmp_path / "nothing")
    with pytest.raises(SessionError, match=r"it has no manifest.json"):
        open_session(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SessionError, match="not a packed session"):
        open_session(tmp_path / "text")


def test_links_are_not_followed(made: Path, tmp_path: Path) -> None:
    """A source that is a link to a file elsewhere is not read."""
    (tmp_path / "secret").write_text("secret")
    stored = made / "captures" / "sources" / "000-train.py"
    stored.unlink()
    stored.symlink_to(tmp_path / "secret")
    session = open_session(made)
    assert session.sources == {}
    assert any("not a regular file" in d.text for d in session.manifest.diagnostics)


@pytest.mark.parametrize("folder", ["captures", "captures/sources", "workers", "workers/7-70"])
def test_folders_that_are_links_are_not_followed(made: Path, tmp_path: Path, folder: str) -> None:
    """Nothing is read of a folder elsewhere that a session calls its own."""
    (made / folder).rename(tmp_path / "elsewhere")
    (made / folder).symlink_to(tmp_path / "elsewhere")
    session = open_session(made)
    if folder.startswith("captures"):
        assert session.sources == {}
    else:
        assert [len(worker.records) for worker in session.workers] == [0]


def rows(count: int, text: str = "") -> bytes:
    """A table of records all alike, small as a file; ``text``: its type, and the only column."""
    sink = io.BytesIO()
    columns = {"type": pa.array([text])} if text else {name: pa.array([0]) for name in RecordTable.__struct_fields__}
    part = pa.table({name: pa.repeat(value[0], 1 << 20).dictionary_encode() for name, value in columns.items()})
    with pq.ParquetWriter(sink, part.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(count >> 20):
            writer.write_table(part)
    return sink.getvalue()


@pytest.mark.parametrize(("count", "text"), [(MAX_CELLS // 4, ""), (1 << 21, "x" * 1000)], ids=["rows", "texts"])
def test_a_table_that_would_be_giant_is_a_loss(made: Path, count: int, text: str) -> None:
    """A small file that stands for gigabytes is left out before they are made."""
    data = rows(count, text)
    assert len(data) < 2_000_000
    name = "workers/7-70/records-000000000150-000000000199.parquet"
    (made / name).write_bytes(data)
    held = pa.total_allocated_bytes()
    session = open_session(made)
    assert list(session.lost_files) == [name]
    assert any("at most" in d.text for d in session.manifest.diagnostics if name in d.text)
    assert pa.total_allocated_bytes() - held < 50 << 20
    assert len(session.workers[0].records) == 150


def test_writer_goes_on_where_files_end(made: Path) -> None:
    """A new writer finds what is durable, skipping a cut segment of events."""
    writer = SessionWriter(made)
    assert writer.durable_records("7-70") == 150
    assert writer.durable_log("7-70") == LogPosition(2, 77)
    (made / "workers" / "7-70" / "events-000000000009-000000000009.parquet").write_bytes(b"PAR1")
    assert SessionWriter(made).durable_log("7-70") == LogPosition(2, 77)
    assert SessionWriter(made).durable_records("8-80") == 0
    assert SessionWriter(made).durable_log("8-80") == LogPosition(1, 0)


def test_no_temporary_file_stays(made: Path) -> None:
    """Files appear under their names only."""
    assert [p for p in made.rglob("*") if p.name.endswith(".tmp")] == []
