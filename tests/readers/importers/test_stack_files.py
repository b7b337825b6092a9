"""Files of perf record are read through perf; where that cannot be, one line says why and what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.native.kernel import perf
from stepscope.readers.importers import stack_files
from stepscope.tables.errors import FormatError
from stepscope.use_cases import flame

TEXT = (
    "train 7/8 100.000001:    1001001 cpu-clock:\n"
    "\t          4005d0 multiply+0x10 (/opt/libmath.so)\n"
    "\t          400500 main+0x8 (/opt/train)\n\n"
)
needs_perf = pytest.mark.skipif(not perf.abilities().perf, reason="perf is not installed, or may not sample")


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(b"PERFILE2" + bytes(100))
    return path


def stand_in(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program called perf, which writes down how it was called."""
    program = folder / "perf"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{body}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_perf_reads_its_own_file(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is read as any; no process is started for each library."""
    (tmp_path / "text").write_text(TEXT)
    stand_in(tmp_path, f"cat {tmp_path}/text", monkeypatch)
    assert stack_files.knows(file)
    (profile,) = stack_files.read(file)
    assert [f.function for f in profile.frames_of(int(profile.samples.stack[0]))] == ["main", "multiply"]
    assert (profile.event, profile.unit, profile.total) == ("cpu-clock", "ns", 1_001_001)
    assert "--no-inline" in (tmp_path / "calls").read_text()
    assert flame.choose(file).graph.profile.total == 1_001_001


def test_a_recording_without_one_of_the_fields(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Perf refuses fields that were not recorded: it prints what it has then."""
    (tmp_path / "text").write_text(TEXT)
    stand_in(tmp_path, f'case "$*" in *-F*) echo half; exit 1;; esac\ncat {tmp_path}/text', monkeypatch)
    assert stack_files.read(file)[0].total == 1_001_001


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo incompatible file format >&2; exit 1", "incompatible file format"),
        ("exit 0", "no sample in it|no folded stack"),
    ],
    ids=["refused", "empty"],
)
def test_what_perf_cannot_read(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    """One line: the file, what perf says, what was expected."""
    stand_in(tmp_path, body, monkeypatch)
    with pytest.raises(FormatError, match=said) as caught:
        stack_files.read(file)
    assert str(caught.value).startswith(str(file))
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_perf(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command for a machine that has it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match=r"perf is not installed here; .* perf script --no-inline -i perf.data"):
        stack_files.read(file)


@needs_perf
@pytest.mark.timeout(120)
def test_a_real_recording(tmp_path: Path) -> None:
    """What perf record -g writes is drawn."""
    path = tmp_path / "perf.data"
    spin = "import time\nend = time.thread_time() + 0.5\nwhile time.thread_time() < end: sum(range(1000))"
    program = shutil.which("perf") or "perf"
    words = [program, "record", "-q", "-g", "-e", "cpu-clock", "-F", "99", "-o", str(path), sys.executable, "-c", spin]
    subprocess.run(words, check=True, capture_output=True)
    shown = flame.choose(path).graph
    assert shown.profile.event == "cpu-clock"
    assert shown.samples > 5
