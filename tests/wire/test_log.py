"""The log: lines survive, rotate, and decode as the model's events."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.model.log.events import Metric, Name, decode
from stepscope.wire import log


def lines(folder: Path) -> list[bytes]:
    """All lines of all files."""
    return [line for file in sorted(folder.glob("log-*.jsonl")) for line in file.read_bytes().splitlines()]


def descriptors(folder: Path) -> list[str]:
    """The files in ``folder`` that this process has open, one entry a descriptor."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(str(link.readlink()))
    return [link for link in links if link.startswith(str(folder))]


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


@given(text=TEXT, role=TEXT, line=st.integers(0, 2**40), own=st.booleans())
def test_lines_round_trip_through_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    role: str,
    line: int,
    own: bool,
) -> None:
    """What the agent writes as a dict is what the collector decodes as a struct."""
    folder = tmp_path_factory.mktemp("log")
    writer = log.LogWriter(str(folder))
    writer.write({"t": "name", "at": 5, "id": 1, "text": text, "role": role, "line": line, "own": own})
    writer.close()
    (data,) = (folder / "log-0001.jsonl").read_bytes().split(b"\n")[:-1]
    assert decode(data) == Name(at=5, id=1, text=text, role=role, line=line, own=own)


def test_undecodable_file_names(tmp_path: Path) -> None:
    """A path with bytes that are no UTF-8 is stored with marks instead of making the line unreadable."""
    writer = log.LogWriter(str(tmp_path))
    writer.write({"t": "name", "at": 1, "id": 1, "text": "x", "file": os.fsdecode(b"/a\xff.py")})
    event = decode(lines(tmp_path)[0])
    assert isinstance(event, Name)
    assert event.file == "/a?.py"


def test_odd_values(tmp_path: Path) -> None:
    """Number-like objects become numbers, others their type's name; what is no JSON is counted as lost."""

    class Index:
        def __index__(self) -> int:
            return 7

    writer = log.LogWriter(str(tmp_path))
    writer.write({"t": "name", "at": Index(), "id": 1, "text": "x", "other": object()})
    assert decode(lines(tmp_path)[0]).at == 7
    assert b"<object>" in lines(tmp_path)[0]
    writer.write({"t": "metric", "name": "x", "value": float("nan")})
    assert (len(lines(tmp_path)), writer.lost) == (1, 1)


def test_threads_and_rotation_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four threads write across many rotations: every line is whole, in some file, and no descriptor leaks."""
    monkeypatch.setattr(log, "ROTATE_BYTES", 20_000)
    writer = log.LogWriter(str(tmp_path))

    def work(n: int) -> None:
        for i in range(2_000):
            writer.write({"t": "metric", "at": i, "name": str(n), "value": float(i)})

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [decode(line) for line in lines(tmp_path)]
    assert writer.lost == 0
    assert len(list(tmp_path.iterdir())) > 5
    for n in range(4):
        mine = [e.at for e in events if isinstance(e, Metric) and e.name == str(n)]
        assert sorted(mine) == list(range(2_000))
    assert len(descriptors(tmp_path)) == 1
    writer.close()
    assert descriptors(tmp_path) == []


def test_a_rotation_between_two_looks_is_not_a_closed_descriptor(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look at the file behind the descriptor that was overtaken by a rotation leaves the descriptor where it is."""
    writer = log.LogWriter(str(tmp_path))
    number, real, looks = writer._fd, log._identity, [(0, 0)]
    monkeypatch.setattr(log, "_identity", lambda fd: looks.pop() if looks else real(fd))
    writer.write({"t": "metric", "at": 1, "name": "m", "value": 1.0})
    assert writer._fd == number
    assert len(descriptors(tmp_path)) == 1
    assert len(lines(tmp_path)) == 1


def test_unread_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When nobody reads, lines are dropped and counted once the files are as many as allowed."""
    monkeypatch.setattr(log, "ROTATE_BYTES", 100)
    monkeypatch.setattr(log, "MAX_FILES", 3)
    writer = log.LogWriter(str(tmp_path))
    for i in range(100):
        writer.write({"t": "metric", "at": i, "name": "m", "value": 1.0})
    assert len(list(tmp_path.iterdir())) == 4
    assert writer.lost > 50
    (tmp_path / "log-0001.jsonl").unlink()
    writer.write({"t": "metric", "at": 100, "name": "m", "value": 1.0})
    assert decode(lines(tmp_path)[-1]).at == 100


def test_a_torn_line_spoils_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a disk that was full in the middle of a line the next line starts on its own."""
    writer = log.LogWriter(str(tmp_path))
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
    writer.write({"t": "metric", "at": 1, "name": "torn", "value": 1.0})
    monkeypatch.undo()
    writer.write({"t": "metric", "at": 2, "name": "whole", "value": 1.0})
    assert decode(lines(tmp_path)[-1]).at == 2
    assert writer.lost == 1


def test_a_closed_descriptor_is_left_to_its_new_owner(tmp_path: Path) -> None:
    """When the job has closed our descriptor and opened a file on that number, nothing of ours goes there."""
    writer = log.LogWriter(str(tmp_path))
    writer.write({"t": "metric", "at": 1, "name": "m", "value": 1.0})
    number = writer._fd
    theirs = os.open(tmp_path / "theirs", os.O_CREAT | os.O_RDWR)
    os.dup2(theirs, number)
    writer.write({"t": "metric", "at": 2, "name": "m", "value": 1.0})
    assert (tmp_path / "theirs").read_bytes() == b""
    assert [decode(line).at for line in lines(tmp_path)] == [1, 2]
    writer.close()
    os.close(theirs)
    os.close(number)


def test_a_log_that_nobody_reads_any_more_is_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the collector has given way, a process that could not be told fills the file that it has, and counts."""
    monkeypatch.setattr(log, "ROTATE_BYTES", 1000)
    folder = tmp_path / "procs" / "1-1"
    folder.mkdir(parents=True)
    writer = log.LogWriter(str(folder))
    (tmp_path / "gave-way.json").write_text("{}")
    for number in range(100):
        writer.write({"t": "name", "at": number, "id": number, "text": "x"})
    assert [file.name for file in folder.iterdir()] == ["log-0001.jsonl"]
    assert len(lines(folder)) + writer.lost == 100
    assert writer.lost > 50
