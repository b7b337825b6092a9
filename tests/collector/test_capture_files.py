"""Files of captures are hostile until they are in the session: names stay inside, sizes are bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.collector import capture_files
from stepscope.errors import CaptureError


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """(raw, captures) with one trace in the first."""
    raw, captures = tmp_path / "captures" / "raw-a", tmp_path / "captures"
    (raw / "plugins" / "profile" / "run").mkdir(parents=True)
    (raw / "plugins" / "profile" / "run" / "host.xplane.pb").write_bytes(b"\n\x00")
    return raw, captures


def test_traces_are_numbered(tmp_path: Path) -> None:
    """Each capture has its number; several files of one share it."""
    raw, captures = folders(tmp_path)
    assert capture_files.take(raw, ["plugins/profile/run/host.xplane.pb"], captures, "ops") == ("ops-001.xplane.pb",)
    for name in ("run-0001.runmetadata.pb", "run-0002.runmetadata.pb"):
        (raw / name).write_bytes(b"x")
    taken = capture_files.take(raw, ["run-0001.runmetadata.pb", "run-0002.runmetadata.pb"], captures, "ops")
    assert taken == ("ops-002-001.runmetadata.pb", "ops-002-002.runmetadata.pb")
    assert (captures / "ops-001.xplane.pb").read_bytes() == b"\n\x00"


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../../secret", "plugins/../../x", "missing", "plugins"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    """Whatever a log says, only regular files below the capture's own folder are taken."""
    raw, captures = folders(tmp_path)
    with pytest.raises(CaptureError, match="capture"):
        capture_files.take(raw, [name], captures, "ops")


def test_links_are_refused(tmp_path: Path) -> None:
    """Neither a link nor a file behind a linked folder is taken."""
    raw, captures = folders(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b").write_bytes(b"x")
    (raw / "a").symlink_to(tmp_path / "elsewhere" / "b")
    (raw / "folder").symlink_to(tmp_path / "elsewhere")
    for name in ("a", "folder/b"):
        with pytest.raises(CaptureError, match="no regular file"):
            capture_files.take(raw, [name], captures, "ops")


def test_an_empty_trace_is_a_failure(tmp_path: Path) -> None:
    """TensorFlow leaves an empty file, and no error, where 2 GB do not suffice."""
    raw, captures = folders(tmp_path)
    (raw / "empty").write_bytes(b"")
    with pytest.raises(CaptureError, match="0 bytes"):
        capture_files.take(raw, ["empty"], captures, "ops")
    with pytest.raises(CaptureError, match="0 files"):
        capture_files.take(raw, [], captures, "ops")
