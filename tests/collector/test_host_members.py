"""Members of a job on one host: who knows whom, and who is the last."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.collector.host_entries import S, member

from stepscope.collector import host_members
from stepscope.collector.host_members import Members, MemberSession
from stepscope.launcher import rundir


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of members are in the test's folder."""
    monkeypatch.setattr(rundir, "temporary_directories", lambda: [tmp_path])


def dead(entry: MemberSession) -> None:
    """The collector and the job of a session have died."""
    config = {"owner_pid": 2**22, "owner_ticks": 1, "pid_namespace": str(Path("/proc/self/ns/pid").readlink())}
    rundir.write_json(Path(entry.run) / "config.json", config)


def register(folder: Path, entry: MemberSession) -> Members:
    """Enter a session that would name its own joint session."""
    return host_members.register("job", entry, folder / f"{entry.names[0]}-job.stepscope")


def leave(folder: Path, entry: MemberSession, at_s: int, *, tasks: int = 2) -> Members | None:
    """End a session."""
    return host_members.leave("job", folder / entry.session, entry.names, at_s * S, tasks)


def test_the_last_to_end_gets_all(tmp_path: Path) -> None:
    """The first names the joint session, only the last gets the members, and nothing is left."""
    one, two = member(tmp_path, 0), member(tmp_path, 1)
    assert len(register(tmp_path, one).entries) == 1
    known = register(tmp_path, two)
    assert (known.joint, len(known.entries)) == (str(tmp_path / "worker 0-job.stepscope"), 2)
    assert host_members.others_run("job", tmp_path / "w0.stepscope")
    assert leave(tmp_path, one, 10) is None
    assert not host_members.others_run("job", tmp_path / "w1.stepscope")
    found = leave(tmp_path, two, 11)
    assert found is not None
    assert {entry.session for entry in found.entries} == {one.session, two.session}
    assert not list(tmp_path.glob(f"{host_members.PREFIX}*"))


def test_a_member_that_says_late_that_it_is_one(tmp_path: Path) -> None:
    """Who ended before is joined with it; who ended before it began is of an earlier run."""
    one, two = member(tmp_path, 0), member(tmp_path, 1, began_s=5)
    register(tmp_path, one)
    assert leave(tmp_path, one, 10) is None
    assert len(register(tmp_path, two).entries) == 2
    assert leave(tmp_path, two, 11) is not None
    later = member(tmp_path, 0)
    register(tmp_path, later)
    leave(tmp_path, later, 10)
    assert len(register(tmp_path, member(tmp_path, 1, began_s=12)).entries) == 1


def test_the_only_member_leaves_nothing(tmp_path: Path) -> None:
    """Where the other tasks are on other hosts; and where all are in its session, whoever else runs here."""
    one = member(tmp_path, 0)
    register(tmp_path, one)
    assert leave(tmp_path, one, 10) is None
    assert not list(tmp_path.glob(f"{host_members.PREFIX}*"))
    member(tmp_path, 1)
    register(tmp_path, one)
    assert leave(tmp_path, one, 10, tasks=1) is None
    assert not list(tmp_path.glob(f"{host_members.PREFIX}*"))


def test_a_collector_that_died_is_not_waited_for(tmp_path: Path) -> None:
    """Its session is one of those to join; opening it completes it."""
    one, two = member(tmp_path, 0), member(tmp_path, 1)
    register(tmp_path, one)
    register(tmp_path, two)
    dead(two)
    found = leave(tmp_path, one, 10)
    assert found is not None
    assert len(found.entries) == 2


def test_a_damaged_file_is_that_of_none(tmp_path: Path) -> None:
    """A writer that was killed takes no other member along."""
    register(tmp_path, member(tmp_path, 0))
    (path,) = tmp_path.glob(f"{host_members.PREFIX}*")
    path.write_bytes(b'{"entries": [')
    assert len(register(tmp_path, member(tmp_path, 1)).entries) == 1


def test_a_file_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    """A link in a folder that all may write to leads nowhere."""
    path = host_members.path_of("job", tmp_path)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r".*"):
        register(tmp_path, member(tmp_path, 0))
    assert not (tmp_path / "elsewhere").exists()


def test_files_of_jobs_that_are_over_are_swept(tmp_path: Path) -> None:
    """Not while a member runs, nor while somebody may come late; and where all were killed, at once."""
    one, other = member(tmp_path, 0), member(tmp_path, 1)
    register(tmp_path, one)
    host_members.sweep()
    assert list(tmp_path.glob(f"{host_members.PREFIX}*"))
    leave(tmp_path, one, time.monotonic_ns() // S)
    host_members.sweep()
    assert list(tmp_path.glob(f"{host_members.PREFIX}*"))
    dead(other)
    host_members.sweep()
    assert not list(tmp_path.glob(f"{host_members.PREFIX}*"))
    register(tmp_path, one)
    dead(one)
    host_members.sweep()
    assert not list(tmp_path.glob(f"{host_members.PREFIX}*"))


@pytest.mark.parametrize("left", [b"", b'{"entries": ['])
def test_what_a_killed_writer_left_is_swept(tmp_path: Path, left: bytes) -> None:
    """Nobody holds its lock, and it names nobody who runs."""
    host_members.path_of("job", tmp_path).write_bytes(left)
    host_members.sweep()
    assert not list(tmp_path.glob(f"{host_members.PREFIX}*"))
