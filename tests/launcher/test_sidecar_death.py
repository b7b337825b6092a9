"""How a sidecar died is left for the next one of its run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from stepscope.launcher import give_way, sidecar_death
from stepscope.launcher.sidecar_process import SidecarProcess
from stepscope.native import own_python


def died(run: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> str:
    """What is told of a sidecar that ran this instead, after one that wrote into the log too."""
    (run / "sidecar.log").write_text("a word of the one before\n")
    monkeypatch.setattr(own_python, "command", lambda *_args, **_more: [sys.executable, "-S", "-c", code])
    sidecar = SidecarProcess(run, run / "s.stepscope")
    sidecar.start()
    until = time.monotonic() + 30
    while not sidecar.reaped() and time.monotonic() < until:
        os.waitid(os.P_PID, sidecar.pid, os.WEXITED | os.WNOWAIT)
    return sidecar_death.read(run)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise ValueError('no such table')", "exit code 1, its log ends with 'ValueError: no such table'"),
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV, no word in its log"),
        ("import os; os.kill(os.getpid(), 40)", "signal 40, no word in its log"),
        ("import sys; sys.exit('x' * 900)", f"exit code 1, its log ends with '{'x' * 200}'"),
        ("pass", ""),
        (f"raise SystemExit({give_way.EXIT_CODE})", ""),
    ],
)
def test_how_and_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, told: str) -> None:
    """Those of its own, not of one before; nothing of one that was done or gave way."""
    assert died(tmp_path, monkeypatch, code) == told


def test_a_mark_that_is_damaged_tells_nothing(tmp_path: Path) -> None:
    """Then it is only known that it died."""
    (tmp_path / "sidecar-death.json").write_text('{"how": 7}')
    assert sidecar_death.read(tmp_path) == ""
