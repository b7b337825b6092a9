"""Parts of sessions on their way to a place."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from stepscope.fleet.part_names import parsed
from stepscope.model.session.session import Manifest
from stepscope.sessions.fleet import attempts, sending
from stepscope.sessions.fleet.sending import Destination
from stepscope.store.manifests import read_manifest
from stepscope.tables import layout
from stepscope.tables.errors import SessionError, TargetError, UsageError

RECORDED = Path(__file__).parents[2] / "data" / "mirrored-replicas" / "slow.stepscope"


@pytest.fixture(name="session")
def _session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(RECORDED, tmp_path / "a.stepscope")
    return tmp_path / "a.stepscope"


def parts_in(folder: Path) -> list[str]:
    """The parts of a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def changed(session: Path, change: dict[str, object]) -> Manifest:
    """Write another manifest."""
    made = msgspec.convert({**msgspec.to_builtins(read_manifest(session)), **change}, Manifest)
    (session / layout.MANIFEST).write_bytes(msgspec.json.encode(made))
    return made


def test_added_twice_is_there_once(session: Path, tmp_path: Path) -> None:
    """The name is that of the content, and nothing stays in the spool."""
    to = Destination(url=str(tmp_path / "parts"))
    (line,) = sending.add([session], to)
    sending.add([session, session], to)
    (name,) = parts_in(tmp_path / "parts")
    found = parsed(name)
    assert found is not None
    assert found.is_of((tmp_path / "parts" / name).read_bytes())
    assert name in line
    assert parts_in(to.spool.folder) == []


def test_what_cannot_be_sent_waits(session: Path, tmp_path: Path) -> None:
    """And goes with the next part, or when somebody asks."""
    place = tmp_path / "parts"
    place.write_text("in the way")
    to = Destination(url=str(place))
    with pytest.raises(TargetError):
        sending.add([session], to)
    assert sending.outcome(session, to, "a.stepscope")[0] is False
    waiting = parts_in(to.spool.folder)
    assert len(waiting) == 1
    place.unlink()
    assert sending.add([], to) == ["1 part that waited was sent, too"]
    assert parts_in(place) == waiting
    assert parts_in(to.spool.folder) == []


def test_authorities_of_another_address(session: Path, tmp_path: Path) -> None:
    """``--ca-file`` may be for the server that sessions are sent to: a folder and a store have no certificate."""
    to = Destination(url=str(tmp_path / "parts"), ca_file=tmp_path / "CA")
    arrived, line = sending.outcome(session, to, "a.stepscope")
    assert arrived, line
    assert len(parts_in(tmp_path / "parts")) == 1


def test_a_folder_of_another_working_directory(session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for "parts" goes to the folder that was meant, and to no other of that name."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    (tmp_path / "a" / "parts").write_text("in the way")
    with pytest.raises(TargetError):
        sending.add([session], Destination(url="parts"))
    monkeypatch.chdir(tmp_path / "b")
    assert sending.add([], Destination(url="parts")) == []
    assert not (tmp_path / "b" / "parts").exists()
    (tmp_path / "a" / "parts").unlink()
    monkeypatch.chdir(tmp_path / "a")
    assert sending.add([], Destination(url="parts")) == ["1 part that waited was sent, too"]
    assert len(parts_in(tmp_path / "a" / "parts")) == 1


@pytest.mark.parametrize("sources", [False, True])
def test_the_command_for_later_asks_for_the_same(session: Path, tmp_path: Path, *, sources: bool) -> None:
    """The part that it makes says what this one would have said."""
    (tmp_path / "parts").write_text("in the way")
    arrived, line = sending.outcome(session, Destination(url=str(tmp_path / "parts"), sources=sources), "a.stepscope")
    assert not arrived
    assert line.endswith(f"stepscope fleet add a.stepscope --to {tmp_path / 'parts'}" + " --fleet-sources" * sources)


def test_a_store(session: Path, tmp_path: Path) -> None:
    """Whatever fsspec knows takes parts as it takes sessions."""
    memory = pytest.importorskip("fsspec.implementations.memory")
    sending.add([session], Destination(url="memory://bucket/fleet-test"))
    found = [path for path in memory.MemoryFileSystem().find("/bucket/fleet-test") if path.endswith(".parquet")]
    assert len(found) == 1


def test_sessions_without_parts(session: Path, tmp_path: Path) -> None:
    """One that still runs, one that is joined of others, none at all: each says what was expected."""
    to = Destination(url=str(tmp_path / "parts"))
    changed(session, {"members": [{"folder": "b.stepscope", "id": "b", "name": "worker 0"}]})
    with pytest.raises(SessionError, match="joined of 1 members; add their own sessions"):
        sending.add([session], to)
    with pytest.raises(SessionError):
        sending.add([tmp_path / "absent.stepscope"], to)
    with pytest.raises(UsageError):
        sending.add([RECORDED], Destination(url="nowhere://x"))
    assert not (tmp_path / "parts").exists()


def test_the_next_attempt(session: Path, tmp_path: Path) -> None:
    """The newest earlier session of the same command in the same folder that failed, within a day."""
    first = changed(session, {"exit_code": 1, "ended_ns": 10**9})

    def later(seconds: float, **change: object) -> Manifest:
        started = first.started_unix_ns + round(seconds * 1e9)
        return replace(first, id="later", **{"started_unix_ns": started, **change})

    path = tmp_path / "b.stepscope"
    assert attempts.earlier(path, later(60)) == first.id
    assert attempts.earlier(path, later(0.5)) == "", "the first had not ended"
    assert attempts.earlier(path, later(90_000)) == "", "a day has gone by"
    assert attempts.earlier(path, later(60, command=("other",))) == ""
    assert attempts.earlier(path, later(60, cwd="/elsewhere")) == ""
    shutil.copytree(session, tmp_path / "c.stepscope")
    newer = changed(tmp_path / "c.stepscope", {"id": "c", "started_unix_ns": first.started_unix_ns + 2 * 10**9})
    assert attempts.earlier(path, later(60)) == newer.id
    changed(tmp_path / "c.stepscope", {"exit_code": None, "state": "running", "ended_ns": 0})
    assert attempts.earlier(path, later(60)) == first.id, "the other one still runs"
    changed(tmp_path / "c.stepscope", {"exit_code": 0, "state": "finished"})
    assert attempts.earlier(path, later(60)) == first.id


@pytest.mark.parametrize(
    ("mode", "clean", "repeated"),
    [
        ("enable", False, True),
        ("enable", True, False),
        ("run", False, True),
        ("attach", False, False),
        ("import", False, False),
        ("cell", False, False),
    ],
)
def test_no_exit_code_is_no_failure(session: Path, tmp_path: Path, mode: str, *, clean: bool, repeated: bool) -> None:
    """Only of a job whose exit handlers did not run, and which was measured from its begin."""
    workers = msgspec.to_builtins(read_manifest(session).workers)
    ended = [{**worker, "clean_exit": clean} for worker in workers]
    first = changed(session, {"exit_code": None, "mode": mode, "workers": ended, "ended_ns": 10**9})
    later = replace(first, id="later", started_unix_ns=first.started_unix_ns + 60 * 10**9)
    assert attempts.earlier(tmp_path / "b.stepscope", later) == (first.id if repeated else "")
    failed = changed(session, {"exit_code": 1, "mode": "run"})
    again = attempts.earlier(tmp_path / "b.stepscope", later)
    assert again == (failed.id if mode in {"run", "enable"} else "")
