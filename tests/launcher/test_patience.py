"""Trials that are given up."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from stepscope.launcher import patience
from stepscope.launcher.patience import LOOK_S, Patience, available_ratio


def test_a_trial_that_takes_too_long_is_ended_once() -> None:
    """Its process is killed, why is known, and nobody looks again."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as job:
        patient, impatient = Patience(seconds=3_600.0), Patience(seconds=1e-9)
        assert (patient.look(job.pid), patient.why) == (LOOK_S, "")
        assert impatient.look(job.pid) == LOOK_S
        assert job.wait() == -signal.SIGKILL
        assert "not done after" in impatient.why
        assert impatient.look(job.pid) is None


def test_a_trial_that_fills_the_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it may take."""
    monkeypatch.setattr(patience, "available_ratio", lambda: 0.03)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as job:
        limits = Patience()
        limits.look(job.pid)
        assert job.wait() == -signal.SIGKILL
        assert "less than 4 % of the machine's memory" in limits.why


@pytest.mark.parametrize(
    ("text", "ratio"),
    [("MemTotal: 200 kB\nMemAvailable: 50 kB\n", 0.25), ("MemTotal: 200 kB\n", 1.0), ("", 1.0), ("MemTotal: x\n", 1.0)],
)
def test_available_memory(text: str, ratio: float) -> None:
    """Unknown memory ends nothing."""
    assert available_ratio(text) == ratio
