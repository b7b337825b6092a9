"""perf is started without its reading of the kernel's symbols, where that is allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from stepscope.native.kernel import perf_start


def prefix(folder: Path) -> list[str]:
    found = perf_start.words(folder)
    if not found:
        pytest.skip("no mount namespaces here")
    return found


def test_what_is_started_sees_two_symbols_and_nobody_else(tmp_path: Path) -> None:
    """The file of the kernel's symbols is short for it alone."""
    words = prefix(tmp_path)
    seen = subprocess.run([*words, "cat", "/proc/kallsyms"], capture_output=True, check=True).stdout
    whole = Path("/proc/kallsyms").read_bytes().splitlines(keepends=True)
    expected = [line for line in whole if line.split()[2] in {b"_text", b"_stext"}]
    assert sorted(seen.splitlines(keepends=True)) == sorted(expected)
    assert len(expected) == 2


def test_it_stays_the_same_process(tmp_path: Path) -> None:
    """Whoever follows, stops and waits for perf has its number."""
    process = subprocess.Popen([*prefix(tmp_path), "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate()
    assert int(out) == process.pid


def test_without_a_file_to_mount_it_starts_all_the_same(tmp_path: Path) -> None:
    """A mount that fails costs what it always cost, no window."""
    words = prefix(tmp_path)
    (tmp_path / "kallsyms").unlink()
    assert subprocess.run([*words, "echo", "started"], capture_output=True, check=True).stdout == b"started\n"


def test_without_rights_nothing_is_put_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that refuses, and none."""
    refuses = tmp_path / "unshare"
    refuses.write_text("#!/bin/sh\nexit 1\n")
    refuses.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    assert shutil.which("unshare") == str(refuses)
    assert perf_start.words(tmp_path) == []
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert perf_start.words(tmp_path) == []
