"""What the sidecar of an enabled job does with its session when the report stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.member_sessions import sessions

from stepscope.collector.always_on.pth_file import Settings
from stepscope.sessions import merge
from stepscope.sessions.fleet import sending as fleet_sending
from stepscope.sessions.gathering import sending
from stepscope.sidecar import always_on
from stepscope.tables.errors import UsageError
from stepscope.wire import trouble


def settings(gather: Path | str, fleet: Path | str = "") -> Settings:
    """Those of an environment that sends its sessions, and leaves parts of them."""
    return Settings(python="python", package="stepscope", gather=str(gather), fleet=str(fleet))


def test_sessions_are_sent_where_enable_said(tmp_path: Path) -> None:
    """Those of all tasks are joined from there."""
    place = tmp_path / "gathered"
    parts = sessions(tmp_path, [[1.0], [31.0]])
    for part in parts:
        always_on.gather(part, settings(place))
    joint, _ = merge.gathered(str(place), None, tmp_path / "job.stepscope")
    assert sorted(path.name for path in (joint / "members").iterdir()) == ["worker-0.stepscope", "worker-1.stepscope"]
    assert trouble.read(str(tmp_path)) == []


def test_parts_are_left_where_enable_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each session; what could not be left is said, with the command that does it later."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (one, other) = sessions(tmp_path, [[1.0], [31.0]])
    always_on.leave_part(one, settings(""))
    for session in (one, other):
        always_on.leave_part(session, settings("", tmp_path / "parts"))
    assert len(list((tmp_path / "parts").rglob("*.parquet"))) == 2
    assert trouble.read(str(tmp_path)) == []
    (tmp_path / "file").write_text("")
    always_on.leave_part(one, settings("", tmp_path / "file"))
    ((_, where, text),) = trouble.read(str(tmp_path))
    assert where == fleet_sending.NOT_LEFT
    assert f"stepscope fleet add {one} --to {tmp_path / 'file'}" in text


def test_what_could_not_be_sent_is_told(tmp_path: Path) -> None:
    """With the command that sends it later; nothing is sent where nothing was asked for."""
    (part, _) = sessions(tmp_path, [[1.0], [31.0]])
    always_on.gather(part, settings(""))
    assert trouble.read(str(tmp_path)) == []
    (tmp_path / "file").write_text("")
    always_on.gather(part, settings(tmp_path / "file"))
    ((_, where, text),) = trouble.read(str(tmp_path))
    assert where == sending.NOT_GATHERED
    assert f"stepscope gather send {part} --to" in text


@pytest.mark.parametrize(
    ("gather", "hosts", "key", "said"),
    [
        ("http://10.0.0.5:7332", "", False, "without --key-file"),
        ("", "a,b", False, "without --key-file"),
        ("", "a", True, "1 hosts"),
        ("", "", True, "without --clock-hosts or --gather"),
    ],
)
def test_what_could_never_work_is_said_by_enable(gather: str, hosts: str, key: bool, said: str, tmp_path: Path) -> None:
    """Before any job starts, as by run."""
    from stepscope.sessions.gathering import asked

    file = tmp_path / "key"
    file.write_bytes(bytes(32))
    file.chmod(0o600)
    with pytest.raises(UsageError, match=said):
        asked.check(gather, hosts, file if key else None, None)
