"""Sessions made by the writer itself."""

import json
from pathlib import Path

import numpy as np
import pytest

from stepscope.store.writer import EventRow, LogPosition, SessionWriter
from stepscope.tables.records import RecordTable

ORIGIN_NS = 5_000_000_000_000


def records(first: int, count: int) -> RecordTable:
    """Records number ``first`` to ``first + count - 1``; the later the number, the later the start."""
    number = np.arange(first, first + count, dtype=np.int64)
    return RecordTable(
        start_ns=1000 * number,
        dur_ns=number % 7 * 100,
        arg=-number,
        name=number % 3,
        kind=np.full(count, 18, np.int64),
        flags=np.zeros(count, np.int64),
        thread=np.ones(count, np.int64),
        seq=number + 1,
    )


def line(kind: str, at: int, **fields: object) -> EventRow:
    """A stored log line."""
    return EventRow(at - ORIGIN_NS, kind, json.dumps({"t": kind, "at": at, **fields}).encode())


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A session of one worker with two segments of records, events and a source."""
    path = tmp_path / "made.stepscope"
    path.mkdir()
    manifest = {
        "schema_version": 1,
        "id": "x",
        "state": "finished",
        "origin_monotonic_ns": ORIGIN_NS,
        "workers": [{"key": "7-70", "pid": 7, "command": ["train.py"]}],
    }
    (path / "manifest.json").write_text(json.dumps(manifest))
    writer = SessionWriter(path)
    writer.write_records("7-70", records(0, 100))
    writer.write_records("7-70", records(100, 50))
    rows = [
        line("name", ORIGIN_NS + 5, id=1, text="work"),
        line("batch", ORIGIN_NS + 9, loop=ORIGIN_NS + 4000, role="train"),
        line("from-the-future", ORIGIN_NS + 10, what=1),
    ]
    writer.write_events("7-70", rows, LogPosition(2, 77))
    writer.write_source("000-train.py", b"print(1)\n")
    writer.write_source("index.json", json.dumps({"files": [{"path": "/x/train.py", "file": "000-train.py"}]}).encode())
    return path
