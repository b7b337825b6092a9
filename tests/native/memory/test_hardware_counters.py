"""Counting a process with perf, here by a program that writes what perf wrote elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.native.memory import hardware_counters
from stepscope.native.memory.hardware_counters import Counting

SERVER = """\
2004.31;msec;task-clock;2004311287;100.00;1.002;CPUs utilized
5763019874;;cycles:u;582631861;58.24;;
9873214;;dTLB-load-misses:u;581350815;58.11;;
27183442;;LLC-load-misses:u;579349952;57.91;43.96;of all LL-cache accesses
"""


def perf(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A program that stands for perf."""
    program = folder / "perf"
    program.write_text(f"#!/bin/sh\n{body}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_what_perf_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers by our names; it is asked for user code of the process, for the time."""
    perf(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/asked\ncat << END\n{SERVER}END\n')
    assert Counting(4711, 0.25).result() == {
        "cpu_ns": 2_004_310_000,
        "cycles": 5_763_019_874,
        "dtlb_load_misses": 9_873_214,
        "llc_load_misses": 27_183_442,
    }
    asked = (tmp_path / "asked").read_text()
    assert "task-clock,cycles:u," in asked
    assert "-p 4711" in asked
    assert asked.rstrip().endswith("sleep 0.250")


@pytest.mark.parametrize("body", ["exit 1\n", "echo 'nonsense;;;'\n", "echo '1.0;msec;task-clock;1;100;;'\n"])
def test_nothing_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A failing perf, other output, and a processor without counters give nothing."""
    perf(tmp_path, monkeypatch, body)
    assert Counting(4711, 0.25).result() == {}


def test_without_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not possible, and no error but that of a missing file."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not hardware_counters.possible()
    with pytest.raises(FileNotFoundError):
        Counting(4711, 0.25)
