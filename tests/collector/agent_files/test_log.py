"""The log's reader gives whole lines, in order, across files."""

from pathlib import Path

import pytest

from stepscope.collector.agent_files.log import LogTail, Position
from stepscope.wire import log


def test_lines_across_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the writer goes on in another file so does the reader; files that are durable are deleted."""
    monkeypatch.setattr(log, "ROTATE_BYTES", 200)
    writer = log.LogWriter(str(tmp_path))
    tail = LogTail(str(tmp_path))
    seen = []
    for number in range(100):
        writer.write({"t": "metric", "at": number, "name": "x", "value": 1.0})
        if number % 7 == 0:
            seen += tail.read()
    seen += tail.read(final=True)
    assert [line.at for line in seen] == list(range(100))
    assert {line.type for line in seen} == {"metric"}
    assert writer.index > 3
    tail.release(tail.position)
    assert [p.name for p in tmp_path.iterdir()] == [log.log_name(writer.index)]
    assert LogTail(str(tmp_path), tail.position).read() == []


def test_cut_line(tmp_path: Path) -> None:
    """A line without its end is waited for; from a dead writer it counts as damaged."""
    path = tmp_path / log.log_name(1)
    path.write_bytes(b'{"t":"a","at":1}\n{"t":"b"')
    tail = LogTail(str(tmp_path))
    assert [line.type for line in tail.read()] == ["a"]
    with path.open("ab") as stream:
        stream.write(b',"at":2}\n{"t"')
    assert [(line.type, line.at) for line in tail.read()] == [("b", 2)]
    assert tail.damaged == 0
    assert tail.read(final=True) == []
    assert tail.damaged == 1


def test_damaged_line(tmp_path: Path) -> None:
    """What is no JSON object with a type is counted and skipped."""
    (tmp_path / log.log_name(1)).write_bytes(b'nonsense\n[1]\n{"at":1}\n{"t":"good"}\n')
    tail = LogTail(str(tmp_path))
    assert [line.type for line in tail.read()] == ["good"]
    assert tail.damaged == 3


def test_no_log_yet(tmp_path: Path) -> None:
    """A process that has not written a line has none."""
    tail = LogTail(str(tmp_path))
    assert tail.read() == []
    assert tail.position == Position(1, 0)
