"""Files of captures are hostile until they are in the session: names stay inside, sizes are bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.collector.captures import capture_files
from stepscope.derive.optrace.steps import traced_steps
from stepscope.model.session.session import CaptureInfo
from stepscope.readers.protobuf.codec import encode_bytes, encode_number
from stepscope.readers.xplane import xspace
from stepscope.store import optrace
from stepscope.tables.errors import CaptureError, FormatError

DEVICE = "/job:worker/replica:0/task:0/device:CPU:0"


def metadata(*, start_us: int) -> bytes:
    """A RunMetadata with one op of 40 us."""
    node = encode_bytes(1, b"loss") + encode_number(2, start_us) + encode_number(5, 40)
    device = encode_bytes(1, DEVICE.encode()) + encode_bytes(2, node + encode_bytes(8, b"loss = Mean(x)"))
    return encode_bytes(1, encode_bytes(1, device))


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


def test_a_trace_that_was_read_keeps_its_number(tmp_path: Path) -> None:
    """The framework's file goes when it has been read; the next capture gets another name all the same."""
    raw, captures = folders(tmp_path)
    (captures / "optraces" / "ops-001").mkdir(parents=True)
    assert capture_files.take(raw, ["plugins/profile/run/host.xplane.pb"], captures, "ops") == ("ops-002.xplane.pb",)


XPLANES = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "xplane"


@pytest.mark.skipif(not XPLANES.is_dir(), reason="shared data")
@pytest.mark.parametrize("keep_raw", [False, True])
def test_a_trace_is_read_onto_the_session_s_clock(tmp_path: Path, *, keep_raw: bool) -> None:
    """Its events stand in the session at the time of the capture; the file stays only where it is wanted."""
    _, captures = folders(tmp_path)
    source = next(XPLANES.rglob("*cpu*.xplane.pb"))
    plain = xspace.read_file(source)
    (captures / "ops-001.xplane.pb").write_bytes(source.read_bytes())
    began = plain.source.started_unix_ns
    about = CaptureInfo(id="a", worker="1-2", at_ns=7_000_000_000, unix_ns=began + 1_000)
    held = capture_files.read(tmp_path, ["ops-001.xplane.pb"], about, keep_raw=keep_raw)
    assert held == (("optraces/ops-001", "ops-001.xplane.pb") if keep_raw else ("optraces/ops-001",))
    assert (captures / "ops-001.xplane.pb").exists() is keep_raw
    stored = optrace.load(tmp_path, "ops-001")
    assert len(stored.events) == len(plain.events)
    assert int(stored.events.start_ns.min() - plain.events.start_ns.min()) == 7_000_000_000 - 1_000


def test_a_damaged_trace_stays(tmp_path: Path) -> None:
    """What cannot be read is said, and is there to be looked at; what no reader takes is kept as it is."""
    _, captures = folders(tmp_path)
    (captures / "ops-001.xplane.pb").write_bytes(b"\n\xff\xff\xff")
    with pytest.raises(FormatError, match="damaged"):
        capture_files.read(tmp_path, ["ops-001.xplane.pb"], CaptureInfo(id="a"), keep_raw=False)
    assert (captures / "ops-001.xplane.pb").exists()
    (captures / "ops-002.runmetadata.pb").write_bytes(b"\x08\x05")
    with pytest.raises(FormatError, match="not RunMetadata"):
        capture_files.read(tmp_path, ["ops-002.runmetadata.pb"], CaptureInfo(id="b"), keep_raw=False)
    assert (captures / "ops-002.runmetadata.pb").exists()
    unknown = ["ops-003.bin"]
    assert capture_files.read(tmp_path, unknown, CaptureInfo(id="c"), keep_raw=False) == tuple(unknown)


@pytest.mark.parametrize("keep_raw", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_runs_of_a_session_are_one_trace_on_the_session_s_clock(tmp_path: Path, count: int, *, keep_raw: bool) -> None:
    """Each run is a step of it; the files go as those of the profiler do."""
    raw, captures = folders(tmp_path)
    names = [f"run-{number:04d}.runmetadata.pb" for number in range(count)]
    for number, name in enumerate(names):
        (raw / name).write_bytes(metadata(start_us=5_000_000 + 300 * number))
    taken = capture_files.take(raw, names, captures, "ops")
    about = CaptureInfo(id="a", worker="1-2", at_ns=7_000_000_000, unix_ns=4_999_999_000)
    held = capture_files.read(tmp_path, taken, about, keep_raw=keep_raw)
    assert held == ("optraces/ops-001", *(taken if keep_raw else ()))
    assert all((captures / name).exists() is keep_raw for name in taken)
    trace = optrace.load(tmp_path, "ops-001")
    assert [(plane.name, plane.events) for plane in trace.planes] == [(DEVICE, count if count == 1 else 2 * count)]
    (steps,) = traced_steps.find(trace)
    assert steps.how is traced_steps.StepKind.RUN
    assert not steps.edge.any()
    assert steps.start_ns.tolist() == [7_000_001_000 + 300_000 * number for number in range(count)]
    assert steps.dur_ns.tolist() == [40_000] * count


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
        with pytest.raises(CaptureError, match="not a regular file"):
            capture_files.take(raw, [name], captures, "ops")


def test_an_empty_trace_is_a_failure(tmp_path: Path) -> None:
    """TensorFlow leaves an empty file, and no error, where 2 GB do not suffice."""
    raw, captures = folders(tmp_path)
    (raw / "empty").write_bytes(b"")
    with pytest.raises(CaptureError, match="0 bytes"):
        capture_files.take(raw, ["empty"], captures, "ops")
    with pytest.raises(CaptureError, match="0 files"):
        capture_files.take(raw, [], captures, "ops")
